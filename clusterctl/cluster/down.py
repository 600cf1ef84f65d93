"""`down`: the head first, then the workers, then proof that nothing is left.

What is stopped is what the nodes have on record for this cluster, so it works from any machine and after the
inventory has changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import replace

from clusterctl.cluster.clearing import Cleared, clear
from clusterctl.cluster.enrolment import announce_end, forget
from clusterctl.cluster.lock import LockFailed, holding
from clusterctl.cluster.observation import Observation, observe
from clusterctl.cluster.places import as_former, elsewhere
from clusterctl.cluster.proof import PortOpen
from clusterctl.cluster.session import Session, session
from clusterctl.cluster.sight import find_membership, orphans_of, programs_of
from clusterctl.cluster.steps import Tell
from clusterctl.cluster.stopping import purge_cache_of
from clusterctl.config.inventory import Inventory
from clusterctl.errors import UsageError
from clusterctl.model import Outcome, Step
from clusterctl.remote.fanout import on_all


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
    inventory any more, or whose port somebody else holds. `purge_cache` removes the tensors that workers keep on
    disk.

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


def _without_lost(
    inventory: Inventory, opened: Session, cleared: Cleared, only: Collection[str], tell: Tell
) -> Cleared:
    """Forget what was asked for and can't be ended: a machine out of reach and in no inventory, which is gone for
    good, or a port that somebody else holds.
    """
    known = {node.name for node in inventory.nodes}
    taken = {name for name, cause in cleared.causes.items() if isinstance(cause, PortOpen)}
    lost = set(only) & (set(opened.unreachable) - known | taken)
    for name in sorted(lost):
        tell(Step("forget", Outcome.WARNING, name, detail="what it may still run has not been ended"))
    return replace(cleared, left={name: reason for name, reason in cleared.left.items() if name not in lost})
