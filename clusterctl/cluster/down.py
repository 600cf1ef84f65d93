"""`down`: the head first, then the workers, then proof that nothing is left.

What is stopped is what the nodes have on record for this cluster, so it works from any machine and after the
inventory has changed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from clusterctl.cluster.lock import holding
from clusterctl.cluster.membership import Membership, parse_membership
from clusterctl.cluster.observation import Observation, observe
from clusterctl.cluster.record import Process
from clusterctl.cluster.session import Session, session
from clusterctl.cluster.steps import Tell
from clusterctl.cluster.stopping import stop_recorded
from clusterctl.config.inventory import Inventory
from clusterctl.errors import ClusterctlError, UsageError
from clusterctl.model import Role
from clusterctl.remote import commands
from clusterctl.remote.fanout import on_all
from clusterctl.remote.transport import Transport


@dataclass(frozen=True, slots=True)
class Found:
    """A program on record, and the transport that leads to its machine."""

    transport: Transport
    process: Process


@dataclass(frozen=True, slots=True)
class Cleared:
    """What `down` did: whether anything changed, and what is left on which node, with the reason."""

    changed: bool
    left: Mapping[str, str]


async def tear_down(
    inventory: Inventory, tell: Tell, *, dry: bool = False, force: bool = False, only: Collection[str] = ()
) -> Cleared:
    """Stop everything of the cluster that its nodes have on record, or only the nodes named in `only`.

    `force` also stops workers whose head can't be reached, or is to stay.

    Raises:
        LockHeld: if another command works on the cluster.
        UsageError: if a name in `only` is nobody's.
    """
    async with session(inventory, dry=dry) as opened, _locked(inventory, opened):
        seen = await _observe_all(inventory, opened)
        membership = _membership(inventory, seen)
        if membership:
            await _join_members(inventory, opened, membership)
            seen = await _observe_all(inventory, opened)
        _check_names(only, inventory, seen)
        return await clear(inventory, opened, seen, tell, force=force, only=only)


async def clear(
    inventory: Inventory,
    opened: Session,
    seen: Mapping[str, Observation],
    tell: Tell,
    *,
    force: bool = False,
    only: Collection[str] = (),
) -> Cleared:
    """Stop what `seen` shows, head first, and prove it. The caller holds the lock."""
    found = _programs(opened, seen, only)
    left = {name: f"could not be reached: {error}" for name, error in opened.unreachable.items()}
    heads = {name: item for name, item in found.items() if item.process.record.role is Role.HEAD}
    workers = {name: item for name, item in found.items() if item.process.record.role is Role.WORKER}
    if not force:
        attached = _still_attached(inventory, opened, seen, workers, heads)
        left |= attached
        workers = {name: item for name, item in workers.items() if name not in attached}

    changed = False
    for group in (heads, workers):
        stopped = await on_all(group, lambda name, item: _stop(inventory, name, item, tell))
        left |= {name: str(error) for name, error in stopped.failed.items()}
        changed = changed or any(stopped.done.values())
        if group is heads and stopped.failed and not force:
            left |= dict.fromkeys(workers, "its head could not be stopped")
            break
    if not opened.dry:
        left |= await _prove(inventory, opened, found, left)
    await _forget(inventory, opened, seen, left, only)
    return Cleared(changed, left)


async def _stop(inventory: Inventory, name: str, item: Found, tell: Tell) -> bool:
    return await stop_recorded(item.transport, inventory.cluster, name, item.process.record.role, tell)


@asynccontextmanager
async def _locked(inventory: Inventory, opened: Session) -> AsyncIterator[None]:
    """Hold the lock if its head can be reached; without a head there is nobody to collide with."""
    head = opened.nodes.get(inventory.head.name)
    if head is None:
        yield
        return
    async with holding(head, inventory.cluster, "down"):
        yield


async def _observe_all(inventory: Inventory, opened: Session) -> dict[str, Observation]:
    outcomes = await on_all(opened.nodes, lambda _, node: observe(node, inventory.cluster))
    opened.unreachable.update(outcomes.failed)
    return dict(outcomes.done)


def _membership(inventory: Inventory, seen: Mapping[str, Observation]) -> Membership | None:
    head = seen.get(inventory.head.name)
    return parse_membership(head.membership) if head else None


async def _join_members(inventory: Inventory, opened: Session, membership: Membership) -> None:
    known = {node.name for node in inventory.nodes}
    await opened.join({m.name: m.destination for m in membership.members if m.name not in known})


def _check_names(only: Collection[str], inventory: Inventory, seen: Mapping[str, Observation]) -> None:
    known = {node.name for node in inventory.nodes} | {
        name for observation in seen.values() for name in observation.processes
    }
    for name in sorted(set(only) - known):
        raise UsageError(f"no node is called `{name}`", hint=f"known are: {', '.join(sorted(known))}")


def _programs(opened: Session, seen: Mapping[str, Observation], only: Collection[str]) -> dict[str, Found]:
    """Every program on record. Nodes on one machine see each other's records; each counts once."""
    return {
        name: Found(opened.nodes[node], process)
        for node, observation in seen.items()
        for name, process in observation.processes.items()
        if (not only or name in only) and (name == node or name not in seen)
    }


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
    return {
        name: f"{peers[0].peer_address} is still attached to it, and its head is not being stopped; use --force"
        for name, item in workers.items()
        if (peers := seen[item.transport.node].attached(item.process.record.port))
    }


async def _prove(
    inventory: Inventory, opened: Session, found: Mapping[str, Found], left: Mapping[str, str]
) -> dict[str, str]:
    """Look again: no process of ours alive, none of our ports open."""
    stopped = {name: item for name, item in found.items() if name not in left}
    machines = {item.transport.node: item.transport for item in stopped.values()}
    outcomes = await on_all(
        machines,
        lambda _, node: observe(
            node,
            inventory.cluster,
            tuple(i.process.record.port for i in stopped.values() if i.transport.node == node.node),
        ),
    )
    remains = {name: f"could not be looked at again: {error}" for name, error in outcomes.failed.items()}
    for name, item in stopped.items():
        seen, record = outcomes.done.get(item.transport.node), item.process.record
        if seen is None:
            continue
        if seen.process(name):
            remains[name] = "its record is still there"
        elif any(holder.pid == item.process.pid for holder in seen.holders.get(record.port, ())):
            remains[name] = f"port {record.port} is still open"
    return remains


async def _forget(
    inventory: Inventory,
    opened: Session,
    seen: Mapping[str, Observation],
    left: Mapping[str, str],
    only: Collection[str],
) -> None:
    """Keep on record only what is left; nodes that could not be reached stay in it."""
    head = opened.nodes.get(inventory.head.name)
    membership = _membership(inventory, seen)
    if head is None or membership is None:
        return
    gone = {member.name for member in membership.members if member.name not in left}
    remaining = membership.without(gone & set(only) if only else gone)
    await head.run(commands.record(inventory.cluster, remaining.to_json() if remaining.members else ""))


def left_errors(cleared: Cleared) -> list[ClusterctlError]:
    """What is left as errors, one for each node."""
    return [ClusterctlError(reason, node=name) for name, reason in cleared.left.items()]
