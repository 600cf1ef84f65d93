"""Stopping what is on record of a cluster, head first, with proof, and what is left of it if that fails."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from clusterctl.cluster.membership import Member
from clusterctl.cluster.observation import Observation
from clusterctl.cluster.places import place_of
from clusterctl.cluster.proof import prove_gone, prove_silent
from clusterctl.cluster.session import Session
from clusterctl.cluster.sight import Found, find_membership, programs_of
from clusterctl.cluster.steps import Tell
from clusterctl.cluster.stopping import remove_damaged, stop_recorded
from clusterctl.config.inventory import Inventory
from clusterctl.errors import ClusterctlError
from clusterctl.model import Role
from clusterctl.remote.fanout import on_all


@dataclass(frozen=True, slots=True)
class Cleared:
    """What `down` did: whether anything changed, and what is left on which node, with the reason.

    `causes` are the errors behind some of the reasons. On the nodes of `spared`, which were not asked for,
    something runs.
    """

    changed: bool
    left: Mapping[str, str]
    causes: Mapping[str, ClusterctlError] = field(default_factory=dict)
    spared: tuple[str, ...] = ()


async def clear(
    inventory: Inventory,
    opened: Session,
    seen: Mapping[str, Observation],
    tell: Tell,
    *,
    force: bool = False,
    only: Collection[str] = (),
    spared: Mapping[str, Found] = MappingProxyType({}),
) -> Cleared:
    """Stop what `seen` shows, but for what is spared, head first, and prove it. The caller holds the lock."""
    # Machines that share a home see each other's records, but only a record's own machine knows what became of it.
    kept = {*spared, *opened.unreachable}
    found = {n: item for n, item in programs_of(seen).items() if (not only or n in only) and n not in kept}
    lost = {name: error for name, error in opened.unreachable.items() if not only or name in only}
    reasons = {name: _lost_reason(inventory, name, error) for name, error in lost.items()}
    reasons |= {name: _orphan_reason(item) for name, item in spared.items() if not only or name in only}
    heads = {name: item for name, item in found.items() if item.process.record.role is Role.HEAD}
    workers = {name: item for name, item in found.items() if item.process.record.role is Role.WORKER}
    if not force:
        attached = _still_attached(inventory, opened, seen, workers, heads)
        reasons |= attached
        workers = {name: item for name, item in workers.items() if name not in attached}

    has_stopped, errors = await _stop_in_order(inventory, opened, heads, workers, tell, force=force)
    removed = await on_all(
        {n: node for n, node in _damaged(seen).items() if (not only or n in only) and n not in kept},
        lambda name, node: remove_damaged(opened.nodes[node], inventory.cluster, name, tell),
    )
    errors |= removed.failed
    if not opened.dry:
        stopped = {n: item for n, item in found.items() if n not in reasons and n not in errors}
        unrecorded = {n: member for n, member in _unrecorded(inventory, seen).items() if not only or n in only}
        errors |= await _prove(inventory, opened, stopped, unrecorded, tell)
    left = reasons | {name: error.message for name, error in errors.items()}
    return Cleared(has_stopped or any(removed.done.values()), left, {**lost, **errors})


async def _stop_in_order(
    inventory: Inventory,
    opened: Session,
    heads: Mapping[str, Found],
    workers: Mapping[str, Found],
    tell: Tell,
    *,
    force: bool,
) -> tuple[bool, dict[str, ClusterctlError]]:
    """Stop the heads, then the workers; return whether there was anything to do, and what failed."""
    changed, errors = False, dict[str, ClusterctlError]()
    for group in (heads, workers):
        stopped = await on_all(group, lambda name, item: _stop(inventory, opened, name, item, tell))
        errors |= stopped.failed
        changed = changed or any(stopped.done.values())
        if group is heads and stopped.failed and not force:
            return changed, errors | {n: ClusterctlError("its head could not be stopped", node=n) for n in workers}
    return changed, errors


async def _stop(inventory: Inventory, opened: Session, name: str, item: Found, tell: Tell) -> bool:
    transport, role = opened.nodes[item.node], item.process.record.role
    return await stop_recorded(transport, inventory.cluster, item.process.record.node, role, tell, label=name)


def _still_attached(
    inventory: Inventory,
    opened: Session,
    seen: Mapping[str, Observation],
    workers: Mapping[str, Found],
    heads: Mapping[str, Found],
) -> dict[str, str]:
    """Workers that a head still uses which this run will not stop."""
    head = inventory.head.name
    head_stays = head in opened.unreachable or (
        not heads
        and any(p.runs and p.record.role is Role.HEAD for s in seen.values() for p in s.processes.values())
    )
    if not head_stays:
        return {}
    attached = {name: _attached(seen[item.node], item.process.record.port) for name, item in workers.items()}
    return {
        name: f"{who} is still attached to it, and its head is not being stopped; use --force"
        for name, who in attached.items()
        if who is not None
    }


def _attached(seen: Observation, port: int) -> str | None:
    """Who is attached to a worker."""
    if seen.sockets is None:
        return "somebody, for all that can be told without a list of sockets,"
    peers = seen.attached(port)
    return peers[0].peer_address if peers else None


def _unrecorded(inventory: Inventory, seen: Mapping[str, Observation]) -> dict[str, Member]:
    """Members whose own record is gone, by their places: their end may never have been proven."""
    membership = find_membership(seen, inventory.head.name)
    members = (*membership.members, *membership.former) if membership else ()
    places = {place_of(member, inventory, seen): member for member in members}
    recorded = programs_of(seen)
    return {p: m for p, m in places.items() if p in seen and p not in recorded and m.name not in recorded}


async def _prove(
    inventory: Inventory,
    opened: Session,
    stopped: Mapping[str, Found],
    unrecorded: Mapping[str, Member],
    tell: Tell,
) -> Mapping[str, ClusterctlError]:
    """Look again, and return what speaks against it that something is gone."""
    cluster, nodes = inventory.cluster, opened.nodes
    gone = await on_all(stopped, lambda n, item: prove_gone(nodes[item.node], cluster, n, item.process, tell))
    silent = await on_all(unrecorded, lambda n, member: prove_silent(nodes[n], cluster, n, member, tell))
    return {**gone.failed, **silent.failed}


def _damaged(seen: Mapping[str, Observation]) -> dict[str, str]:
    """The names of records that can't be read, each with a node that has it."""
    found = {name: node for node, own in seen.items() for name in own.damaged}
    return found | {name: name for name, own in seen.items() if name in own.damaged}


def _lost_reason(inventory: Inventory, name: str, error: ClusterctlError) -> str:
    if any(node.name == name for node in inventory.nodes):
        return f"could not be reached: {error.message}"
    forgetting = f"if it is gone for good, `clusterctl down --node {name} --force` forgets it"
    return f"could not be reached: {error.message}; {forgetting}"


def _orphan_reason(orphan: Found) -> str:
    process = orphan.process
    return (
        f"a {process.record.role} (pid {process.pid}) runs on {orphan.node}, left from a run of "
        f"{process.record.owner} at {process.record.started_at} that is not on record; `down --force` ends it"
    )


def left_errors(cleared: Cleared) -> list[ClusterctlError]:
    """What is left as errors, one for each node."""
    hints = {name: cause.hint for name, cause in cleared.causes.items()}
    return [ClusterctlError(reason, node=name, hint=hints.get(name)) for name, reason in cleared.left.items()]
