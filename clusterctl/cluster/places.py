"""Where to look for members to which the inventory does not lead: nodes that have left it, or moved. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from clusterctl.cluster.membership import Member, Membership, destination_of
from clusterctl.cluster.observation import Observation
from clusterctl.config.inventory import Inventory
from clusterctl.remote.target import Target

HERE = "local"


def place_of(member: Member, inventory: Inventory, seen: Mapping[str, Observation]) -> str:
    """Return what a member's machine is called: as the member, but `NAME@HOST` if the inventory has it elsewhere.

    Whoever brought up a cluster from one of its machines calls that `local`, which is another one for everybody
    else: it is told by what it calls itself.
    """
    name = member.name.partition("@")[0]
    node = next((node for node in inventory.nodes if node.name == name), None)
    if node is None:
        return member.name
    was, now, own = member.destination, destination_of(node), seen.get(name)
    if was is None:
        is_there = own is None or member.hostname in (None, own.system.hostname)
    else:
        is_there = now is not None and (was.host, was.user, was.port) == (now.host, now.user, now.port)
    return name if is_there else _place(member)


def elsewhere(membership: Membership, inventory: Inventory, seen: Mapping[str, Observation]) -> dict[str, Target]:
    """Return where else to look, by the names of the places.

    Not where a node of the inventory keeps the member's record: then it is the same machine by another address,
    unless the record is that of a former member of the same name, to which the inventory leads again.
    """
    known = {node.name for node in inventory.nodes}
    former = {place_of(member, inventory, seen): member.target for member in membership.former}
    found = {place: target for place, target in former.items() if place not in known}
    for member in membership.members:
        place = place_of(member, inventory, seen)
        own = seen.get(member.name)
        if place not in known and (member.name in former or own is None or own.process(member.name) is None):
            found[place] = member.target
    return found


def as_former(seen: Mapping[str, Observation], membership: Membership) -> dict[str, Observation]:
    """Return what was seen, with the programs of former members under the names of their places.

    A new machine may have the name of one that was lost, and both be there.
    """
    places = {former.name for former in membership.former} & set(seen)
    return {**seen, **{place: _renamed(place, seen[place]) for place in places}}


def left_behind(
    membership: Membership, inventory: Inventory, seen: Mapping[str, Observation], left: Collection[str]
) -> tuple[Member, ...]:
    """Return the members that are no nodes of the inventory, or were elsewhere, and on which something is left."""
    known = {node.name for node in inventory.nodes}
    gone = [member for member in membership.members if place_of(member, inventory, seen) in set(left) - known]
    renamed = (replace(member, name=_place(member)) for member in gone)
    kept = (former for former in membership.former if former.name in left)
    return tuple({former.name: former for former in (*kept, *renamed)}.values())


def _place(member: Member) -> str:
    name = member.name.partition("@")[0]
    return f"{name}@{member.destination.host if member.destination else member.hostname or HERE}"


def _renamed(place: str, observation: Observation) -> Observation:
    name = place.partition("@")[0]
    processes = {place if node == name else node: process for node, process in observation.processes.items()}
    return replace(observation, processes=processes)
