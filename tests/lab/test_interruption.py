"""`up` that is interrupted, and `up` that is killed, in each of its phases."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from tests.lab.conftest import MakeLab
from tests.lab.lab import Lab, NodeSpec
from tests.lab.operator import Operator, operator_of, remains
from tests.lab.test_lab_itself import wait_until

SLOW_MBIT = 2  # the model's 98 MB take minutes

# What `up` has just said when it is stopped. After the last it waits for the model.
MOMENTS = (
    "plan the split",
    "put the cluster on record",
    "start the workers",
    "verify the workers",
    "start the head",
)


@pytest.fixture(scope="module")
def lab(make_lab: MakeLab) -> Lab:
    lab = make_lab([NodeSpec("head", models=True), NodeSpec("worker")])
    lab.nodes["worker"].limit_link(SLOW_MBIT, networks=["private"])
    return lab


@pytest.fixture
def operator(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    yield operator_of(lab, tmp_path_factory.mktemp("operator"), workers=["worker"])
    assert remains(lab) == {}


def test_while_it_loads_status_says_so(operator: Operator) -> None:
    operator.succeed("up", "--no-wait")
    wait_until(lambda: operator.status()["head"]["health"] == "loading")
    status = operator.succeed("status", "--json").document
    assert (status["state"], status["problems"]) == ("loading", [])
    operator.succeed("down")


def test_a_cluster_that_is_not_ready_in_time_is_undone(operator: Operator) -> None:
    late = operator.run("up", "--timeout", "1")
    assert late.exit_code == 7
    assert "--timeout" in late.stderr


@pytest.mark.parametrize(
    ("moment", "sent"),
    [
        *((moment, signal.SIGINT) for moment in MOMENTS),
        (MOMENTS[-1], signal.SIGTERM),
        (MOMENTS[-1], signal.SIGHUP),
    ],
)
def test_an_interrupted_up_leaves_nothing(operator: Operator, moment: str, sent: signal.Signals) -> None:
    with operator.running("up") as up:
        up.wait_for(moment)
        interrupted = up.interrupt(sent)
    assert interrupted.exit_code == 130
    assert interrupted.stderr.endswith("error: interrupted; what was started has been undone\n")
    assert remains(operator.lab) == {}


def test_an_interrupted_down_says_that_something_may_be_left(operator: Operator) -> None:
    operator.succeed("up", "--no-wait")
    with operator.running("down", "--json") as down:
        down.wait_for("stop the head")
        interrupted = down.interrupt()
    assert interrupted.exit_code == 130
    assert "not all may be ended: `clusterctl status`" in interrupted.document["error"]["message"]
    operator.succeed("down")


def test_a_second_interrupt_leaves_the_rest_and_says_what(lab: Lab, operator: Operator) -> None:
    with operator.running("up") as up:
        up.wait_for("start the head  head")
        lab.nodes["worker"].limit_cpu(0.02)  # so that its undo takes long
        up.send(signal.SIGINT)
        up.wait_for("start the head  undone")
        interrupted = up.interrupt()
        lab.nodes["worker"].limit_cpu(1)
    assert interrupted.exit_code == 130
    assert "not undone: `start the workers`, `put the cluster on record`" in interrupted.stderr
    assert remains(lab)["head"].programs == ()
    operator.succeed("down")


def test_a_reader_who_leaves_does_not_stop_the_work(operator: Operator) -> None:
    with operator.running("up", "--no-wait") as up:
        up.wait_for("look at the nodes")
        up.close_stderr()
        assert up.finish().exit_code == 0
    operator.succeed("down")


@pytest.mark.parametrize("moment", MOMENTS[1:])
def test_after_a_killed_up_status_is_true_and_down_clears_all(lab: Lab, operator: Operator, moment: str) -> None:
    with operator.running("up") as up:
        up.wait_for(moment)
        killed = up.interrupt(signal.SIGKILL)
        pid = up.pid
    assert killed.exit_code == -signal.SIGKILL

    held = operator.run("up")
    assert held.exit_code == 8
    assert f"(pid {pid})" in held.stderr
    assert "clusterctl unlock" in held.stderr
    operator.succeed("unlock")
    assert operator.succeed("unlock").stdout == "there was no lock\n"

    seen = operator.status()
    found = {process.argv[0]: process.pid for node in lab.nodes.values() for process in node.processes()}
    assert seen["head"]["pid"] == found.get("/opt/llama.cpp/bin/llama-server")
    workers = [worker["pid"] for worker in seen["workers"] if worker["pid"]]
    assert workers == [pid for program, pid in found.items() if program.endswith("ggml-rpc-server")]

    operator.succeed("down")
    assert remains(lab) == {}
    assert operator.status()["state"] == "down"


@pytest.mark.parametrize("moment", ["start the workers", "start the head"])
def test_up_works_after_one_that_was_killed_once_its_lock_is_too_old(
    lab: Lab, operator: Operator, moment: str
) -> None:
    with operator.running("up") as up:
        up.wait_for(moment)
        up.interrupt(signal.SIGKILL)
    lab.ssh("head", "touch -d @0 ~/.local/state/clusterctl/lab/lock/beat")
    lab.nodes["worker"].restore_link()
    try:
        operator.succeed("up")
    finally:
        lab.nodes["worker"].limit_link(SLOW_MBIT, networks=["private"])
    assert operator.status()["state"] == "up"
    operator.succeed("down")


@pytest.mark.parametrize(("name", "program"), [("head", "llama-server"), ("worker", "ggml-rpc-server")])
def test_a_process_that_dies_while_the_model_loads_ends_up_at_once(
    lab: Lab, operator: Operator, name: str, program: str
) -> None:
    with operator.running("up") as up:
        up.wait_for("start the head  head")
        wait_until(lambda: operator.status()["state"] == "loading")
        pid = next(p.pid for p in lab.nodes[name].processes() if p.argv[0].endswith(program))
        lab.nodes[name].run(["kill", "-9", str(pid)])
        died = up.finish()
    assert died.exit_code == 6
    assert f"error: {name}: the {name} has died" in died.stderr
