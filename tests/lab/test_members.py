"""Nodes that left the inventory, or have another host in it, while the cluster ran on them; records cut short."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.lab.conftest import MakeLab
from tests.lab.lab import Lab, NodeSpec
from tests.lab.operator import RPC_PORT, Operator, remains
from tests.lab.ordeal import hasty_operator, programs
from tests.lab.test_failures import HTTP_SERVER, foreign

MOVER = {"name": "mover", "role": "worker"}
STATE = "/root/.local/state/clusterctl/lab"


@pytest.fixture(scope="module")
def lab(make_lab: MakeLab) -> Lab:
    return make_lab([NodeSpec("head", models=True), NodeSpec("left"), NodeSpec("right")])


@pytest.fixture
def operator(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    operator = hasty_operator(lab, tmp_path_factory.mktemp("operator"))
    yield operator
    operator.succeed("down")
    assert remains(lab) == {}


def running(operator: Operator) -> set[str]:
    """The nodes on which programs of the cluster run."""
    return {name for name, pids in programs(operator).items() if pids}


def problems(operator: Operator) -> dict[str, str]:
    """The messages of `status` by their codes."""
    return {problem["code"]: problem["message"] for problem in operator.status()["problems"]}


def left_of(operator: Operator, *arguments: str) -> dict[str, str]:
    """What a `down` that can't be finished leaves, by the names of the places."""
    down = operator.run("down", *arguments, "--json")
    assert down.exit_code == 9
    return {left["node"]: left["reason"] for left in down.document["left"]}


@pytest.fixture
def cut_off(lab: Lab, operator: Operator) -> Iterator[Operator]:
    """A cluster without `left`, whose worker still runs although it left the inventory: it was out of reach."""
    operator.succeed("up")
    shrunk = operator.without_node("left")
    lab.nodes["left"].cut_link(["public"])
    up = shrunk.succeed("up", "--replace")
    assert "clear what is left  left  warning" in up.stderr
    assert "left on nodes that are not of it any more:\n  left: could not be reached" in up.stdout
    yield shrunk
    lab.nodes["left"].restore_link(["public"])


def test_a_node_that_left_while_out_of_reach_stays_on_record_until_it_is_clean(
    lab: Lab, cut_off: Operator
) -> None:
    assert running(cut_off) == {"head", "left", "right"}
    assert cut_off.status()["state"] == "up"
    assert "left@left: " in problems(cut_off)["left-behind"]
    cut_off.succeed("up")
    assert list(left_of(cut_off)) == ["left@left"]
    assert running(cut_off) == {"left"}

    address = lab.nodes["right"].private_address
    with foreign(lab, "right", f"{HTTP_SERVER} --bind {address} {RPC_PORT}", address, RPC_PORT):
        assert cut_off.run("up").exit_code == 6
    cut_off.succeed("up")
    assert list(problems(cut_off)) == ["left-behind"]

    lab.nodes["left"].restore_link(["public"])
    cut_off.succeed("down", "--node", "left@left")
    assert running(cut_off) == {"head", "right"}
    assert cut_off.status()["problems"] == []


def test_a_node_that_is_gone_for_good_can_be_forgotten(lab: Lab, cut_off: Operator, operator: Operator) -> None:
    reason = left_of(cut_off, "--node", "left@left")["left@left"]
    assert "`clusterctl down --node left@left --force` forgets it" in reason
    forgotten = cut_off.succeed("down", "--node", "left", "--force")
    assert "forget  left@left  warning" in forgotten.stderr
    assert cut_off.status()["problems"] == []
    cut_off.succeed("down")
    assert list(remains(lab)) == ["left"]
    lab.nodes["left"].restore_link(["public"])
    assert list(left_of(operator)) == ["left"]
    operator.succeed("down", "--force")


def test_a_node_that_is_one_again_is_ended_as_itself(lab: Lab, cut_off: Operator, operator: Operator) -> None:
    lab.nodes["left"].restore_link(["public"])
    done = operator.succeed("down")
    assert "stop the worker  left" in done.stderr
    assert "left@" not in done.stderr
    assert remains(lab) == {}


@pytest.fixture
def moved(lab: Lab, operator: Operator) -> Operator:
    """The worker `mover` runs on `left`, and the inventory has it on `right` now."""
    nodes = operator.without_node("left").without_node("right").inventory["nodes"]
    at_left, at_right = (
        operator.with_inventory({**operator.inventory, "nodes": [*nodes, {**MOVER, "host": host}]})
        for host in ("left", "right")
    )
    at_left.succeed("up")
    return at_right


def test_a_node_that_moved_is_seen_and_ended_where_it_runs(lab: Lab, moved: Operator) -> None:
    status = moved.status()
    assert (status["state"], status["problems"]) == ("up", [])
    assert [worker["state"] for worker in status["workers"]] == ["serving"]
    refused = moved.run("up")
    assert refused.exit_code == 6
    assert "up --replace" in refused.stderr
    assert running(moved) == {"head", "left"}
    moved.succeed("down")
    assert remains(lab) == {}


def test_up_moves_a_node_and_ends_it_where_it_was(lab: Lab, moved: Operator) -> None:
    moved.succeed("up", "--replace")
    assert running(moved) == {"head", "right"}
    moved.succeed("down")
    assert remains(lab) == {}


def test_a_node_that_moved_from_a_lost_machine_is_told_from_its_successor(lab: Lab, moved: Operator) -> None:
    lab.nodes["left"].cut_link(["public"])
    unknown = moved.run("status", "--json")
    assert unknown.exit_code == 9
    assert "mover@left" in unknown.stdout
    moved.succeed("up", "--replace")
    assert running(moved) == {"head", "left", "right"}
    assert list(problems(moved)) == ["left-behind"]
    lab.nodes["left"].restore_link(["public"])
    moved.succeed("down")
    assert remains(lab) == {}


def test_another_address_of_the_same_machine_is_no_other_machine(lab: Lab, operator: Operator) -> None:
    operator.succeed("up")
    renamed = operator.with_node("left", host=lab.nodes["left"].public_address)
    assert renamed.status()["problems"] == []
    assert renamed.succeed("up", "--json").document["changed"] is False
    renamed.succeed("down")
    assert remains(lab) == {}


def test_the_record_says_what_the_machine_of_each_member_calls_itself(lab: Lab, operator: Operator) -> None:
    operator.succeed("up", "--no-wait")
    record = json.loads(lab.nodes["head"].run(["cat", f"{STATE}/cluster.json"]).stdout)
    assert {member["name"]: member["hostname"] for member in record["members"]} == {
        name: name for name in lab.nodes
    }


@pytest.mark.parametrize("node", ["left", "head"])
def test_a_record_that_was_cut_short_is_named_and_its_program_ended(
    lab: Lab, operator: Operator, node: str
) -> None:
    operator.succeed("up")
    lab.nodes[node].run(["truncate", "-s", "0", f"{STATE}/nodes/{node}/record.json"])
    assert f"{node}: " in problems(operator)["record-damaged"]
    done = operator.succeed("down")
    assert f"remove a damaged record  {node}" in done.stderr
    assert remains(lab) == {}


def test_a_list_of_members_that_was_cut_short_is_removed(lab: Lab, operator: Operator) -> None:
    operator.succeed("up")
    lab.nodes["head"].run(["truncate", "-s", "0", f"{STATE}/cluster.json"])
    operator.succeed("down", "--force")
    assert remains(lab) == {}


def test_a_head_that_can_keep_no_state_is_a_start_that_failed(lab: Lab, operator: Operator) -> None:
    head = lab.nodes["head"]
    head.run(["mkdir", "-p", "/root/.local/state"])
    head.run(["mount", "-t", "tmpfs", "-o", "ro", "disk", "/root/.local/state"])
    refused = operator.run("up")
    head.run(["umount", "/root/.local/state"])
    assert refused.exit_code == 6
    assert "error: head: could not take the cluster's lock: " in refused.stderr
    assert "Read-only file system" in refused.stderr
    assert "hint: look at free disk space and at the user's rights" in refused.stderr
