"""`recover`: bring a broken cluster back, in the order in which llama.cpp can be: head down, workers, head up."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from clusterctl.cluster.breakage import Breakage, Verdict, judge_status
from clusterctl.cluster.bringup import Options
from clusterctl.cluster.restarts import Budget, History
from clusterctl.cluster.status import read_status
from clusterctl.cluster.steps import Tell
from clusterctl.cluster.up import Brought, bring_up
from clusterctl.config.inventory import Inventory
from clusterctl.config.recipe import Recipe
from clusterctl.errors import ClusterctlError, Degraded, LockHeld, NodeUnreachable, UsageError
from clusterctl.model import Outcome, Step

WATCH_INTERVAL_S = 10.0


@dataclass(frozen=True, slots=True)
class Recovery:
    """How to recover: with what options of `up`, how often, and how often to look in between."""

    options: Options
    budget: Budget
    interval_s: float = WATCH_INTERVAL_S


async def recover(inventory: Inventory, recipe: Recipe, recovery: Recovery, tell: Tell) -> Brought | None:
    """Bring the cluster back if it is broken; return `None` if there was nothing to do.

    Raises:
        NodeUnreachable: if too little can be seen to act.
        UsageError: if no cluster is on record.
        ClusterctlError: the last attempt's error, once the budget is spent.
    """
    seen = judge_status(await read_status(inventory))
    if seen.verdict is Verdict.WELL:
        return None
    if seen.verdict is Verdict.UNSURE:
        raise NodeUnreachable(
            f"too little can be seen to act: {seen.cause}",
            hint="bring the node back, or take the cluster down with `clusterctl down`",
        )
    if seen.verdict is Verdict.ABSENT:
        raise UsageError(seen.cause, hint="`clusterctl up` starts it")
    history = History()
    while True:
        try:
            return await _restart(inventory, recipe, recovery, tell, seen)
        except (LockHeld, NodeUnreachable):
            raise
        except ClusterctlError as error:
            seen = replace(seen, culprit=error.node or seen.culprit, cause=error.message)
            history = history.with_restart(time.monotonic(), seen.culprit)
            _stop_if_hopeless(history, recovery.budget, seen, error)
        await asyncio.sleep(history.pause_s(recovery.budget, time.monotonic()))


async def watch(
    inventory: Inventory, recipe: Recipe, recovery: Recovery, tell: Tell, idle: Callable[[Breakage], None]
) -> None:
    """Look again and again, and bring the cluster back whenever it is broken; return only by an error.

    `idle` is called with what was seen whenever nothing is done.

    Raises:
        Degraded: once the budget is spent, or a node breaks again at once.
    """
    history = History()
    while True:
        seen = await _look(inventory)
        if seen.verdict is not Verdict.BROKEN:
            idle(seen)
            await asyncio.sleep(recovery.interval_s)
            continue
        _stop_if_hopeless(history, recovery.budget, seen, Degraded(seen.cause, node=seen.culprit))
        await asyncio.sleep(history.pause_s(recovery.budget, time.monotonic()))
        try:
            await _restart(inventory, recipe, recovery, tell, seen)
        except (LockHeld, NodeUnreachable) as error:
            # Somebody else is at work, or a node has just gone: nothing was tried.
            idle(replace(seen, verdict=Verdict.UNSURE, cause=str(error)))
            await asyncio.sleep(recovery.interval_s)
        except ClusterctlError as error:
            tell(Step("recover", Outcome.FAILED, error.node, detail=error.message))
            history = history.with_restart(time.monotonic(), error.node or seen.culprit)
        else:
            history = history.with_restart(time.monotonic(), seen.culprit)


async def _look(inventory: Inventory) -> Breakage:
    try:
        return judge_status(await read_status(inventory))
    except ClusterctlError as error:
        return Breakage(Verdict.UNSURE, error.node or inventory.head.name, error.message)


async def _restart(
    inventory: Inventory, recipe: Recipe, recovery: Recovery, tell: Tell, seen: Breakage
) -> Brought:
    """Show the cause, clear what is left, head first, and start anew.

    The cluster stays on record if this fails, for it is meant to be up.
    """
    tell(Step("cause", Outcome.DONE, seen.culprit, detail=seen.cause))
    options = replace(recovery.options, replace=True, keep_record=True)
    return await bring_up(inventory, recipe, options, tell)


def _stop_if_hopeless(history: History, budget: Budget, seen: Breakage, error: ClusterctlError) -> None:
    refusal = history.refusal(budget, time.monotonic(), seen.culprit)
    if refusal is not None:
        raise Degraded(
            f"given up: {refusal}; last cause: {seen.cause}",
            node=seen.culprit,
            hint=error.hint or f"`clusterctl logs {seen.culprit}` shows more; mend it, then `clusterctl recover`",
            log=error.log,
        ) from error
