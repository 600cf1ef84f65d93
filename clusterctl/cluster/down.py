"""`down`: the head first, then the workers, then proof that nothing is left.

What is stopped is what the nodes have on record for this cluster, so it works from any machine and after the
inventory has changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from clusterctl.cluster.enrolment import announce_end, forget
from clusterctl.cluster.lock import LockFailed, holding
from clusterctl.cluster.observation import Observation, observe
from clusterctl.cluster.places import as_former, elsewhere
from clusterctl.cluster.proof import prove_gone
from clusterctl.cluster.session import Session, session
from clusterctl.cluster.sight import Found, find_membership, orphans_of, programs_of
from clusterctl.cluster.steps import Tell
from clusterctl.cluster.stopping import purge_cache_of, remove_damaged, stop_recorded
from clusterctl.config.inventory import Inventory
from clusterctl.errors import ClusterctlError, UsageError
from clusterctl.model import Outcome, Role, Step
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


async def tear_down(
    inventory: Inventory,
    tell: Tell,
    *,
    dry: bool = False,
    force: bool = False,
    purge_cache: bool = False,
    only: Collection[str] = (),
) -> Cleared:
    """Stop everything of the cluster that its nodes have on record, or only the nodes named in `only`.

    `force` also stops workers whose head can't be reached, or is to stay, and orphans: running programs of this
    cluster that no record of it counts; and it forgets those of `only` that are out of reach and not in the
    inventory any more. `purge_cache` removes the tensors that workers keep on disk.

    Raises:
        LockHeld: if another command works on the cluster.
        UsageError: if a name in `only` is nobody's.
    """
    async with session(inventory, dry=dry) as opened, _locked(inventory, opened, tell):
        seen = await observe_members(inventory, opened)
        only = _named(only, opened, seen)
        spared = {} if force else orphans_of(seen, inventory.head.name)
        if not only:
            await announce_end(inventory, opened, seen)
        cleared = await clear(inventory, opened, seen, tell, force=force, only=only, spared=spared)
        if force:
            cleared = _without_lost(inventory, opened, cleared, only, tell)
        cleared = replace(cleared, left=await forget(inventory, opened, seen, cleared.left, only))
        cleared = replace(cleared, spared=_running_but(only, seen))
        return await _purge_caches(inventory, opened, cleared, tell, only) if purge_cache else cleared


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
    left = {name: _lost_reason(inventory, name, error) for name, error in lost.items()}
    left |= {name: _orphan_reason(item) for name, item in spared.items() if not only or name in only}
    heads = {name: item for name, item in found.items() if item.process.record.role is Role.HEAD}
    workers = {name: item for name, item in found.items() if item.process.record.role is Role.WORKER}
    if not force:
        attached = _still_attached(inventory, opened, seen, workers, heads)
        left |= attached
        workers = {name: item for name, item in workers.items() if name not in attached}

    changed, causes = False, dict(lost)
    for group in (heads, workers):
        stopped = await on_all(group, lambda name, item: _stop(inventory, opened, name, item, tell))
        causes |= stopped.failed
        left |= {name: error.message for name, error in stopped.failed.items()}
        changed = changed or any(stopped.done.values())
        if group is heads and stopped.failed and not force:
            left |= dict.fromkeys(workers, "its head could not be stopped")
            break
    removed = await on_all(
        {n: node for n, node in _damaged(seen).items() if (not only or n in only) and n not in kept},
        lambda name, node: remove_damaged(opened.nodes[node], inventory.cluster, name, tell),
    )
    causes |= removed.failed
    left |= {name: error.message for name, error in removed.failed.items()}
    changed = changed or any(removed.done.values())
    if not opened.dry:
        left |= await _prove(inventory, opened, {n: item for n, item in found.items() if n not in left}, tell)
    return Cleared(changed, left, causes)


async def _purge_caches(
    inventory: Inventory, opened: Session, cleared: Cleared, tell: Tell, only: Collection[str]
) -> Cleared:
    """Remove the caches of all workers that are clean."""
    clean = {
        name: node
        for name, node in opened.nodes.items()
        if name != inventory.head.name and name not in cleared.left and (not only or name in only)
    }
    purged = await on_all(clean, lambda _, node: purge_cache_of(node, inventory.cluster, tell))
    left = {**cleared.left, **{name: error.message for name, error in purged.failed.items()}}
    changed, causes = cleared.changed or any(purged.done.values()), {**cleared.causes, **purged.failed}
    return replace(cleared, changed=changed, left=left, causes=causes)


async def _stop(inventory: Inventory, opened: Session, name: str, item: Found, tell: Tell) -> bool:
    transport, role = opened.nodes[item.node], item.process.record.role
    return await stop_recorded(transport, inventory.cluster, item.process.record.node, role, tell, label=name)


@contextmanager
def ending(opened: Session) -> Iterator[None]:
    """Note on an interrupt of the body that something may be left."""
    try:
        yield
    except asyncio.CancelledError as error:
        if not opened.dry:
            error.add_note("not all may be ended: `clusterctl status` shows what runs, `clusterctl down` ends it")
        raise


@asynccontextmanager
async def _locked(inventory: Inventory, opened: Session, tell: Tell) -> AsyncIterator[None]:
    """Hold the lock if its head can be reached; without a head there is nobody to collide with.

    Nor is there where it can't be made: a full disk must not keep a cluster from being taken down.
    """
    head = opened.nodes.get(inventory.head.name)
    async with AsyncExitStack() as stack:
        if head is not None:
            try:
                lease = await stack.enter_async_context(holding(head, inventory.cluster, "down"))
                opened.guard(lease.demand)
            except LockFailed as error:
                tell(Step("lock the cluster", Outcome.WARNING, head.node, detail=error.message.partition("\n")[0]))
        with ending(opened):
            yield


async def observe_members(inventory: Inventory, opened: Session) -> dict[str, Observation]:
    """Look at every node of the inventory, and where else members are that only the head still knows."""
    seen = await _observe_all(inventory, opened)
    membership = find_membership(seen, inventory.head.name)
    if membership is None:
        return seen
    if places := elsewhere(membership, inventory, seen):
        await opened.join(places)
        seen = await _observe_all(inventory, opened)
    return as_former(seen, membership)


async def _observe_all(inventory: Inventory, opened: Session) -> dict[str, Observation]:
    outcomes = await on_all(opened.nodes, lambda _, node: observe(node, inventory.cluster))
    opened.unreachable.update(outcomes.failed)
    return dict(outcomes.done)


def _named(only: Collection[str], opened: Session, seen: Mapping[str, Observation]) -> set[str]:
    """Return what is meant by `only`: a node, or one that left the inventory and is `NAME@HOST` now."""
    programs = {name for observation in seen.values() for name in (*observation.processes, *observation.damaged)}
    known = programs | set(opened.nodes) | set(opened.unreachable)
    former = {name: {place for place in known if place.partition("@")[0] == name} for name in set(only) - known}
    for name, places in sorted(former.items()):
        if not places:
            raise UsageError(f"no node is called `{name}`", hint=f"known are: {', '.join(sorted(known))}")
    return (set(only) & known).union(*former.values())


def _running_but(only: Collection[str], seen: Mapping[str, Observation]) -> tuple[str, ...]:
    """The nodes other than those of `only` on which something was seen to run."""
    running = sorted(name for name, found in programs_of(seen).items() if found.process.runs)
    return tuple(name for name in running if only and name not in only)


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


async def _prove(
    inventory: Inventory, opened: Session, stopped: Mapping[str, Found], tell: Tell
) -> dict[str, str]:
    """Look again, and return what is left of what was stopped."""
    proven = await on_all(
        stopped,
        lambda name, item: prove_gone(opened.nodes[item.node], inventory.cluster, name, item.process, tell),
    )
    return {name: error.message for name, error in proven.failed.items()}


def _without_lost(
    inventory: Inventory, opened: Session, cleared: Cleared, only: Collection[str], tell: Tell
) -> Cleared:
    """Forget those asked for that are out of reach and in no inventory: machines that are gone for good."""
    known = {node.name for node in inventory.nodes}
    lost = (set(only) & set(opened.unreachable)) - known
    for name in sorted(lost):
        tell(Step("forget", Outcome.WARNING, name, detail="what it may still run has not been ended"))
    return replace(cleared, left={name: reason for name, reason in cleared.left.items() if name not in lost})


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
