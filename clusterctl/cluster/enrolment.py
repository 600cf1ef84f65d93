"""Whether a cluster is meant to be up, and who still belongs to it: kept where the cluster is on record."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from clusterctl.cluster.membership import Membership
from clusterctl.cluster.observation import Observation
from clusterctl.cluster.places import place_of
from clusterctl.cluster.session import Session
from clusterctl.cluster.sight import find_keeper, find_membership
from clusterctl.config.inventory import Inventory
from clusterctl.errors import UsageError
from clusterctl.remote import commands


class NotWanted(UsageError):
    """The cluster is not meant to be up."""


def demand_wanted(seen: Mapping[str, Observation], inventory: Inventory) -> None:
    """Return nothing if the cluster is on record as one that is meant to be up.

    Raises:
        NotWanted: if it is not.
    """
    membership = find_membership(seen, inventory.head.name)
    if membership is None or not membership.is_wanted:
        raise NotWanted(
            "no cluster is on record" if membership is None else "the cluster is being taken down",
            node=inventory.head.name,
            hint="`clusterctl up` starts it",
        )


async def announce_end(inventory: Inventory, opened: Session, seen: Mapping[str, Observation]) -> None:
    """Write down that the cluster is to be gone, so that nobody brings it back if this is cut short."""
    membership = find_membership(seen, inventory.head.name)
    if membership is not None:
        await _keep(inventory, opened, seen, replace(membership, is_leaving=True))


async def forget(
    inventory: Inventory,
    opened: Session,
    seen: Mapping[str, Observation],
    left: Mapping[str, str],
    only: Collection[str] = (),
) -> None:
    """Keep on record only what is left; nodes that could not be reached stay in it."""
    membership = find_membership(seen, inventory.head.name)
    if membership is None:
        if not left:
            await _drop_damaged(inventory, opened, seen)
        return
    everyone = (*membership.members, *membership.former)
    names = {member.name: {member.name, place_of(member, inventory)} for member in everyone}
    gone = {name for name, own in names.items() if own.isdisjoint(left) and not (only and own.isdisjoint(only))}
    remaining = membership.without(gone)
    await _keep(inventory, opened, seen, replace(remaining, is_leaving=remaining.is_leaving or not only))


async def _drop_damaged(inventory: Inventory, opened: Session, seen: Mapping[str, Observation]) -> None:
    """Remove what can't be read any more, as after a loss of power."""
    for name, observation in seen.items():
        if observation.membership is not None:
            await opened.nodes[name].run(commands.record(inventory.cluster, ""))


async def _keep(
    inventory: Inventory, opened: Session, seen: Mapping[str, Observation], membership: Membership
) -> None:
    keeper = find_keeper(seen, inventory.head.name)
    if keeper is not None:
        await opened.nodes[keeper].run(commands.record(inventory.cluster, membership.to_json()))
