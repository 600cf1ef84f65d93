"""Where else to look for what a cluster runs: machines that left the inventory, or have another address."""

from __future__ import annotations

from dataclasses import replace

import pytest

from clusterctl.cluster.membership import Member, Membership
from clusterctl.cluster.observation import Observation
from clusterctl.cluster.places import as_former, elsewhere, left_behind, place_of
from clusterctl.model import Role
from clusterctl.remote.target import Destination, Machine
from tests.unit.cluster_samples import inventory
from tests.unit.sights import observation, process

NODES = """
version: 1
cluster: demo
network: 10.10.0.0/24
nodes:
  - {name: left, role: worker, host: left.lan, ssh: {user: ops}}
  - {name: right, role: worker, connection: local}
  - {name: head, role: head, host: head.lan}
"""
INVENTORY = inventory(NODES)
OLD = Destination("old.lan", user="ops")
NOW = Destination("left.lan", user="ops")


def member(name: str = "left", destination: Destination | None = NOW, hostname: str | None = None) -> Member:
    return Member(name, Role.WORKER, destination, "10.10.0.21", 50052, hostname=hostname)


def membership(*members: Member, former: tuple[Member, ...] = ()) -> Membership:
    return Membership(members, "http://127.0.0.1:8080", "demo", former=former)


def machine(hostname: str) -> Observation:
    """A machine that calls itself so and has nothing on record."""
    at_rest = replace(observation("left"), processes={})
    return replace(at_rest, system=replace(at_rest.system, hostname=hostname))


def seen(name: str, *programs: str) -> dict[str, Observation]:
    return {name: replace(observation("left"), node=name, processes={p: process("left") for p in programs})}


@pytest.mark.parametrize(
    ("destination", "place"),
    [
        (NOW, "left"),
        (Destination("left.lan", user="ops", identity_file="~/k", connect_timeout_s=2), "left"),
        (OLD, "left@old.lan"),
        (Destination("left.lan", user="other"), "left@left.lan"),
        (Destination("left.lan", user="ops", port=2222), "left@left.lan"),
        (None, "left"),
    ],
)
def test_a_machine_is_told_by_host_user_and_port(destination: Destination | None, place: str) -> None:
    assert place_of(member(destination=destination), INVENTORY, {}) == place


@pytest.mark.parametrize(("hostname", "place"), [("desk", "right"), (None, "right"), ("laptop", "right@laptop")])
@pytest.mark.parametrize("name", ["right", "right@desk"])
def test_what_was_local_is_told_by_what_its_machine_calls_itself(
    name: str, hostname: str | None, place: str
) -> None:
    here = {"right": machine("desk")}
    assert place_of(member(name, None, hostname), INVENTORY, here) == place


def test_what_was_local_is_the_same_machine_over_ssh() -> None:
    assert place_of(member("left", None, "desk"), INVENTORY, {"left": machine("desk")}) == "left"
    assert place_of(member("left", None, "desk"), INVENTORY, {"left": machine("laptop")}) == "left@desk"


def test_what_was_local_on_another_machine_is_looked_for_there_alone() -> None:
    here = {"right": machine("desk")}
    assert elsewhere(membership(member("right", None, "laptop")), INVENTORY, here) == {
        "right@laptop": Machine("laptop")
    }
    assert elsewhere(membership(member("gone", None, "laptop")), INVENTORY, here) == {"gone": Machine("laptop")}
    assert elsewhere(membership(member("gone", None)), INVENTORY, here) == {"gone": None}


def test_a_record_of_a_former_member_hides_no_other_machine_of_its_name() -> None:
    former = member("left@desk", None, "desk")
    now = member("left", None, "laptop")
    here = {"left": replace(machine("desk"), processes={"left": process("left")})}
    assert elsewhere(membership(now, former=(former,)), INVENTORY, here) == {"left@laptop": Machine("laptop")}


def test_a_machine_that_was_renamed_is_known_by_the_record_it_keeps() -> None:
    assert elsewhere(membership(member("left", None, "old")), INVENTORY, seen("left", "left")) == {}


def test_a_node_that_was_reached_over_ssh_and_is_this_machine_now_has_moved() -> None:
    assert place_of(member("right", OLD), INVENTORY, {}) == "right@old.lan"


def test_members_of_the_inventory_are_nowhere_else() -> None:
    assert elsewhere(membership(member()), INVENTORY, {}) == {}


def test_a_member_that_left_is_looked_for_where_it_was() -> None:
    assert elsewhere(membership(member("gone", OLD)), INVENTORY, {}) == {"gone": OLD}


def test_a_member_that_moved_is_looked_for_where_it_was_unless_its_record_is_where_it_is_now() -> None:
    moved = membership(member(destination=OLD))
    assert elsewhere(moved, INVENTORY, {}) == {"left@old.lan": OLD}
    assert elsewhere(moved, INVENTORY, seen("left")) == {"left@old.lan": OLD}
    assert elsewhere(moved, INVENTORY, seen("left", "left")) == {}


def test_a_former_member_is_always_looked_for() -> None:
    former = member("left@old.lan", OLD)
    found = elsewhere(membership(member(), former=(former,)), INVENTORY, seen("left", "left"))
    assert found == {"left@old.lan": OLD}


def test_a_former_member_that_is_a_node_again_is_nowhere_else() -> None:
    assert place_of(member("left@left.lan"), INVENTORY, {}) == "left"
    assert elsewhere(membership(former=(member("left@left.lan"),)), INVENTORY, {}) == {}


def test_programs_of_a_former_member_are_not_taken_for_those_of_its_successor() -> None:
    both = {**seen("left", "left"), **seen("left@old.lan", "left", "other")}
    told = as_former(both, membership(member(), former=(member("left@old.lan", OLD),)))
    assert {place: set(own.processes) for place, own in told.items()} == {
        "left": {"left"},
        "left@old.lan": {"left@old.lan", "other"},
    }


def test_only_what_is_left_and_not_of_the_inventory_is_left_behind() -> None:
    former = (member("a@a.lan", Destination("a.lan")), member("b@b.lan", Destination("b.lan")))
    known = membership(member(), member("gone", OLD), member("right", OLD), former=former)
    left = {"left", "gone", "right@old.lan", "b@b.lan"}
    names = [each.name for each in left_behind(known, INVENTORY, {}, left)]
    assert names == ["b@b.lan", "gone@old.lan", "right@old.lan"]
