"""`recover` and `recover --watch`: what they bring back, what they leave alone, and when they give up."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.lab.conftest import MakeLab
from tests.lab.faults import HEAD, WORKER, kill
from tests.lab.generation import generating
from tests.lab.lab import Lab, NodeSpec
from tests.lab.operator import Operator, Running, remains
from tests.lab.ordeal import LIMITS, demand_up, hasty_operator, programs
from tests.lab.test_lab_itself import wait_until

WATCH = ("recover", "--watch", "--interval", "1", "--token-timeout", "4")
SERVES = "well: it serves"


@pytest.fixture(scope="module")
def lab(make_lab: MakeLab) -> Lab:
    return make_lab([NodeSpec("head", models=True), NodeSpec("left"), NodeSpec("right")])


@pytest.fixture(scope="module")
def operator(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    operator = hasty_operator(lab, tmp_path_factory.mktemp("operator"))
    yield operator
    operator.succeed("down")
    assert remains(lab) == {}


@pytest.fixture
def up(operator: Operator) -> Operator:
    """The operator of a cluster that serves."""
    demand_up(operator)
    return operator


@pytest.fixture
def down(operator: Operator) -> Operator:
    """The operator of a cluster that is not up."""
    operator.succeed("down")
    assert remains(operator.lab) == {}
    return operator


@contextmanager
def slow_load(lab: Lab) -> Iterator[None]:
    """The model takes minutes to load while the body runs."""
    lab.nodes["right"].limit_link(2, ["private"])
    try:
        yield
    finally:
        lab.nodes["right"].restore_link(["private"])


@contextmanager
def watching(operator: Operator) -> Iterator[Running]:
    """A watch that has seen that all is well."""
    with operator.running(*WATCH) as watch:
        watch.wait_for(SERVES)
        yield watch


def order(stderr: str, *texts: str) -> list[int]:
    return [stderr.index(text) for text in texts]


def test_a_cluster_that_serves_is_not_touched(up: Operator) -> None:
    before = programs(up)
    document = up.succeed("recover", "--json").document
    assert (document["ok"], document["changed"]) == (True, False)
    assert programs(up) == before


def test_what_was_never_up_or_was_taken_down_is_not_brought_up(down: Operator) -> None:
    refused = down.run("recover")
    assert refused.exit_code == 2
    assert "nothing is on record" in refused.stderr
    assert "clusterctl up" in refused.stderr


def test_the_head_goes_down_first_and_comes_up_last_and_the_cause_is_shown(up: Operator) -> None:
    kill(up.lab.nodes["left"], WORKER)
    before = programs(up)
    done = up.succeed("recover")
    assert "cause  left  the worker is gone" in done.stderr
    steps = ("cause", "stop the head", "stop the worker", "judge builds", "start the worker", "start the head")
    positions = order(done.stderr, *steps)
    assert positions == sorted(positions)
    after = programs(up)
    assert all(after[name] and not after[name] & before[name] for name in after)


def test_builds_are_compared_again(up: Operator) -> None:
    kill(up.lab.nodes["left"], WORKER)
    refused = up.with_node("left", llama={"build": "b1"}).run("recover", "--restarts", "1")
    assert refused.exit_code == 9
    assert "judge builds and nodes  failed" in refused.stderr
    assert not any(programs(up).values())
    up.succeed("recover")


def test_a_cluster_that_loads_is_waited_for(lab: Lab, operator: Operator) -> None:
    with slow_load(lab):
        operator.succeed("up", "--replace", "--no-wait")
        before = programs(operator)
        with operator.running("recover", "--json") as recovering:
            recovering.wait_for("look at the nodes")
            lab.nodes["right"].restore_link(["private"])
            assert recovering.finish().document["changed"] is False
    assert operator.status()["state"] == "up"
    assert programs(operator) == before


def test_another_cluster_of_that_name_that_loads_is_not_replaced(lab: Lab, operator: Operator) -> None:
    with slow_load(lab):
        operator.succeed("up", "--replace", "--no-wait")
        before = programs(operator)
        refused = operator.with_recipe(context=256).run("recover")
        assert refused.exit_code == 6
        assert "up --replace" in refused.stderr
        assert programs(operator) == before


def test_a_load_that_stands_still_is_begun_anew(lab: Lab, operator: Operator) -> None:
    with slow_load(lab):
        operator.succeed("up", "--replace", "--no-wait")
        lab.nodes["left"].cut_link(["private"])
        with operator.running("recover", *LIMITS) as recovering:
            recovering.wait_for("no progress for 6 s")
            lab.nodes["left"].restore_link(["private"])
            lab.nodes["right"].restore_link(["private"])
            assert recovering.finish().exit_code == 0
    assert operator.status()["state"] == "up"


def test_two_who_recover_at_once_do_not_collide(up: Operator) -> None:
    kill(up.lab.nodes["left"], WORKER)
    with up.running("recover") as one, up.running("recover") as other:
        codes = sorted([one.finish().exit_code, other.finish().exit_code])
    assert codes in ([0, 0], [0, 8])
    assert up.status()["state"] == "up"


def test_the_lock_says_that_it_is_being_brought_back(lab: Lab, up: Operator) -> None:
    kill(lab.nodes["left"], WORKER)
    with up.running("recover") as recovering:
        recovering.wait_for("look at the nodes")
        refused = up.run("down")
        assert refused.exit_code == 8
        assert f"(pid {recovering.pid}) runs `recover`" in refused.stderr
        assert recovering.finish().exit_code == 0


def test_a_watch_brings_back_what_breaks_and_ends_without_a_trace(lab: Lab, up: Operator) -> None:
    with watching(up) as watch:
        for node, program in (("left", WORKER), ("head", HEAD)):
            kill(lab.nodes[node], program)
            watch.wait_for(f"cause  {node}")
            watch.wait_for(SERVES)
        before = programs(up)
        ended = watch.interrupt(signal.SIGTERM)
    assert ended.exit_code == 0
    assert not any(mark in ended.stderr for mark in ("\x1b", "\r"))
    assert programs(up) == before
    assert up.status()["state"] == "up"


def test_a_worker_that_dies_at_once_twice_is_given_up_with_its_log(lab: Lab, up: Operator) -> None:
    with watching(up) as watch:
        for _ in range(2):
            kill(lab.nodes["left"], WORKER)
            watch.wait_for(SERVES)
        kill(lab.nodes["left"], WORKER)
        given_up = watch.finish()
    assert given_up.exit_code == 9
    assert "given up: left broke twice within 60 s of a restart; last cause: left: " in given_up.stderr
    assert "\n  | " in given_up.stderr
    assert "hint: " in given_up.stderr


def test_a_budget_of_one_restart_is_spent_by_one(lab: Lab, up: Operator) -> None:
    with up.running(*WATCH, "--restarts", "1") as watch:
        watch.wait_for(SERVES)
        kill(lab.nodes["left"], WORKER)
        watch.wait_for(SERVES)
        kill(lab.nodes["right"], WORKER)
        given_up = watch.finish()
    assert given_up.exit_code == 9
    assert "right: given up: brought back 1 times within 60 min already" in given_up.stderr


def test_a_blink_of_the_control_machine_touches_nothing(lab: Lab, up: Operator) -> None:
    before = programs(up)
    with watching(up) as watch, generating(lab) as client:
        for node in lab.nodes.values():
            node.cut_link(["public"])
        watch.wait_for("unsure")
        tokens = client.tokens
        for node in lab.nodes.values():
            node.restore_link(["public"])
        watch.wait_for(SERVES)
        wait_until(lambda: client.tokens > tokens)
        assert watch.interrupt(signal.SIGTERM).exit_code == 0
    assert programs(up) == before


def test_a_watch_waits_for_a_node_without_power_and_goes_on_by_itself(lab: Lab, up: Operator) -> None:
    lab.nodes["left"].power_off()
    with up.running(*WATCH) as watch:
        watch.wait_for("unsure: left: ")
        lab.nodes["left"].power_on()
        watch.wait_for("cause  left")
        watch.wait_for(SERVES)
        watch.interrupt(signal.SIGTERM)
    assert up.status()["state"] == "up"


def test_a_watch_does_not_undo_a_down_not_even_one_that_could_not_be_finished(lab: Lab, up: Operator) -> None:
    with watching(up) as watch:
        up.succeed("down")
        watch.wait_for("absent: ")
        assert remains(lab) == {}
        up.succeed("up")
        watch.wait_for(SERVES)
        lab.nodes["left"].power_off()
        assert up.run("down").exit_code == 9
        lab.nodes["left"].power_on()
        watch.wait_for("absent: it has been taken down")
        assert not any(programs(up).values())
        watch.interrupt(signal.SIGTERM)


def test_a_new_watch_goes_on_where_a_killed_one_was(lab: Lab, up: Operator) -> None:
    kill(lab.nodes["left"], WORKER)
    with up.running(*WATCH) as watch:
        watch.wait_for("start the workers")
        watch.interrupt(signal.SIGKILL)
    with up.running(*WATCH) as watch:
        watch.wait_for("runs `recover` since")
        up.succeed("unlock")
        watch.wait_for(SERVES)
        watch.interrupt(signal.SIGTERM)
    assert up.status()["state"] == "up"


def test_a_recovery_that_fails_leaves_the_cluster_on_record(lab: Lab, up: Operator) -> None:
    kill(lab.nodes["left"], WORKER)
    lab.nodes["left"].cut_link(["private"])
    refused = up.run("recover", *LIMITS)
    lab.nodes["left"].restore_link(["private"])
    assert refused.exit_code == 9
    assert f"the head can't reach {lab.nodes['left'].private_address}" in refused.stderr
    status = up.status()
    assert (status["state"], status["desired"]) == ("down", "up")
    up.succeed("recover")


def test_who_slept_and_lost_the_lock_meanwhile_starts_nothing(down: Operator) -> None:
    with down.running("up") as sleeper:
        sleeper.wait_for("read the model's header")
        sleeper.send(signal.SIGSTOP)
        down.succeed("unlock")
        down.succeed("up")
        before = programs(down)
        sleeper.send(signal.SIGCONT)
        woken = sleeper.finish()
    assert woken.exit_code == 8
    assert "lost the cluster's lock" in woken.stderr
    assert programs(down) == before
