"""Several operators of one cluster: the lock, and what a machine that did not bring it up can do."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.lab.conftest import MakeLab
from tests.lab.lab import Lab, NodeSpec
from tests.lab.operator import Operator, operator_of, remains


@pytest.fixture(scope="module")
def lab(make_lab: MakeLab) -> Lab:
    return make_lab([NodeSpec("head", models=True), NodeSpec("worker")])


@pytest.fixture
def operator(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    yield operator_of(lab, tmp_path_factory.mktemp("operator"), workers=["worker"])
    assert remains(lab) == {}


def another_machine(operator: Operator, home: Path) -> Operator:
    """A colleague's machine: the same key, and an SSH configuration of its own that has no aliases."""
    ssh = home / ".ssh"
    ssh.mkdir(parents=True)
    own = operator.lab.ssh_home / ".ssh"
    shutil.copy(own / "id_ed25519", ssh)
    shutil.copy(own / "known_hosts", ssh)
    (ssh / "config").write_text("Host *\n  User root\n")
    colleague = replace(operator, home=home)
    for name, node in operator.lab.nodes.items():
        colleague = colleague.with_node(name, host=node.public_address)
    return colleague


def test_of_two_who_bring_it_up_at_once_one_does(operator: Operator) -> None:
    with operator.running("up", "--json") as one, operator.running("up", "--json") as other:
        finished = [one.finish(), other.finish()]
    codes = sorted(each.exit_code for each in finished)
    assert codes in ([0, 0], [0, 8])
    done = [each for each in finished if each.exit_code == 0]
    assert [each.document["changed"] for each in done].count(True) == 1
    for refused in (each for each in finished if each.exit_code == 8):
        assert "runs `up`" in refused.stderr
    assert operator.status()["state"] == "up"
    operator.succeed("down")


def test_who_comes_second_is_told_who_works_on_it(lab: Lab, operator: Operator) -> None:
    lab.nodes["worker"].limit_link(mbit=2, networks=["private"])
    with operator.running("up") as first:
        first.wait_for("start the head")
        for command in ("up", "down"):
            refused = operator.run(command, "--json")
            assert refused.exit_code == 8
            assert f"(pid {first.pid}) runs `up`" in refused.document["error"]["message"]
            assert "clusterctl unlock" in refused.document["error"]["hint"]
        assert operator.status()["state"] == "loading"
        assert operator.run("check").exit_code == 0
        first.interrupt()
    lab.nodes["worker"].restore_link()


def test_a_check_leaves_the_ports_alone_on_which_another_command_may_start_workers(
    lab: Lab, operator: Operator
) -> None:
    lock = lab.nodes["head"].home / ".local/state/clusterctl/lab/lock"
    lock.mkdir(parents=True)
    worker = operator.succeed("check", "--json").document["nodes"][0]
    operator.succeed("unlock")
    assert worker["link_mbit_s"] is None
    assert [each["code"] for each in worker["problems"] if "another command" in each["message"]] == [
        "link-not-measured"
    ]
    assert operator.succeed("check", "--json").document["nodes"][0]["link_mbit_s"]


def test_who_loses_the_lock_while_it_loads_does_not_say_that_all_is_well(lab: Lab, operator: Operator) -> None:
    lab.nodes["worker"].limit_link(mbit=2, networks=["private"])
    with operator.running("up") as first:
        first.wait_for("start the head")
        operator.succeed("unlock")
        lab.nodes["worker"].restore_link()
        finished = first.finish()
    assert finished.exit_code == 8
    assert "has lost the cluster's lock: somebody has removed it" in finished.stderr
    operator.succeed("down")


def test_another_machine_sees_it_and_takes_it_down(operator: Operator, tmp_path: Path) -> None:
    operator.succeed("up")
    colleague = another_machine(operator, tmp_path / "home")
    assert colleague.status()["state"] == "up"
    colleague.succeed("down")
    assert operator.status()["state"] == "down"


def test_another_machine_finds_it_up_and_changes_nothing(operator: Operator, tmp_path: Path) -> None:
    operator.succeed("up")
    colleague = another_machine(operator, tmp_path / "home")
    assert colleague.succeed("up", "--json").document["changed"] is False
    operator.succeed("down")


def test_a_worker_that_left_the_inventory_is_still_taken_down(operator: Operator) -> None:
    operator.succeed("up")
    shrunk = operator.without_node("worker")
    assert [worker["node"] for worker in shrunk.status()["workers"]] == ["worker"]
    assert shrunk.status()["state"] == "up"
    shrunk.succeed("down")


def test_a_worker_that_left_the_inventory_is_cleared_when_it_is_replaced(lab: Lab, operator: Operator) -> None:
    operator.succeed("up")
    shrunk = operator.without_node("worker")
    assert shrunk.run("up").exit_code == 6
    shrunk.succeed("up", "--replace")
    assert remains(lab).keys() == {"head"}
    shrunk.succeed("down")


def test_a_dead_worker_that_left_the_inventory_does_not_stop_a_replacement(lab: Lab, operator: Operator) -> None:
    operator.with_node("worker", ssh={"connect_timeout": 4}).succeed("up")
    lab.nodes["worker"].power_off()
    shrunk = operator.without_node("worker")
    replaced = shrunk.succeed("up", "--replace")
    assert "left on nodes that are not of it any more" in replaced.stdout
    assert "`clusterctl down --node worker --force` forgets it" in replaced.stdout
    assert shrunk.status()["state"] == "up"
    kept = shrunk.run("down")
    assert kept.exit_code == 9
    assert "worker@worker: could not be reached" in kept.stdout
    lab.nodes["worker"].power_on()
    shrunk.succeed("down")


def test_another_machine_without_the_worker_in_its_inventory_takes_all_down(
    lab: Lab, operator: Operator, tmp_path: Path
) -> None:
    addressed = operator.with_node("worker", host=lab.nodes["worker"].public_address)
    addressed.succeed("up")
    another_machine(addressed, tmp_path / "home").without_node("worker").succeed("down")
