"""Whether a cluster is meant to be up, and who still belongs to it: kept where the cluster is on record."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

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
    """Write down that the cluster is to be gone, so that nobody brings it back if this is cut short.

    A record that can't be written keeps nothing from being ended; `forget` tells of it.
    """
    keeper = find_keeper(seen, inventory.head.name)
    membership = find_membership(seen, inventory.head.name)
    if keeper is not None and membership is not None:
        await _write(inventory, opened, keeper, replace(membership, is_leaving=True).to_json())


async def forget(
    inventory: Inventory,
    opened: Session,
    seen: Mapping[str, Observation],
    left: Mapping[str, str],
    only: Collection[str] = (),
) -> dict[str, str]:
    """Keep on record only what is left; nodes that could not be reached stay in it.

    Returns what is left now, with its reason: also a record that can't be changed, by the node that keeps it.
    """
    keeper = find_keeper(seen, inventory.head.name)
    membership = find_membership(seen, inventory.head.name)
    if keeper is None or membership is None:
        damaged = [] if left else [name for name, own in seen.items() if own.membership is not None]
        kept = [await _write(inventory, opened, name, "") for name in damaged]
        return {**left, **{name: reason for name, reason in zip(damaged, kept, strict=True) if reason}}
    everyone = (*membership.members, *membership.former)
    names = {member.name: {member.name, place_of(member, inventory, seen)} for member in everyone}
    gone = {name for name, own in names.items() if own.isdisjoint(left) and not (only and own.isdisjoint(only))}
    remaining = membership.without(gone)
    remaining = replace(remaining, is_leaving=remaining.is_leaving or not only)
    reason = await _write(inventory, opened, keeper, remaining.to_json())
    return {**left, keeper: "; ".join(filter(None, (left.get(keeper), reason)))} if reason else dict(left)


async def _write(inventory: Inventory, opened: Session, keeper: str, text: str) -> str:
    """Change the record, or remove it for an empty text; return why that could not be done, if so."""
    output = await opened.nodes[keeper].run(commands.record(inventory.cluster, text))
    if output.exit_status == 0:
        return ""
    return (
        f"the cluster's record can't be changed, so `recover` may bring back what was ended: "
        f"{output.stderr.strip()[:200] or f'exit status {output.exit_status}'}"
    )
