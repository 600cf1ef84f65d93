"""`recover`: bring a broken cluster back, in the order in which llama.cpp can be: head down, workers, head up."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace

from clusterctl.cluster.breakage import Breakage, Verdict, judge_status
from clusterctl.cluster.bringup import Options
from clusterctl.cluster.enrolment import NotWanted
from clusterctl.cluster.failure import SHOWN_LINES, read_log_tail
from clusterctl.cluster.lookout import Lookout, looking_out
from clusterctl.cluster.membership import destination_of
from clusterctl.cluster.restarts import Budget, History, Restart
from clusterctl.cluster.status import TOKEN_EVERY_S, look, read_status
from clusterctl.cluster.steps import Tell
from clusterctl.cluster.up import Brought, bring_up
from clusterctl.cluster.up_planning import RunsOtherwise
from clusterctl.config.inventory import Inventory
from clusterctl.config.recipe import Recipe
from clusterctl.errors import ClusterctlError, Degraded, LockHeld, NodesFailed, NodeUnreachable
from clusterctl.model import Outcome, Step
from clusterctl.remote.target import open_transport

WATCH_INTERVAL_S = 10.0

_OUTCOMES: Mapping[Verdict, Outcome] = {Verdict.UNSURE: Outcome.WARNING, Verdict.BROKEN: Outcome.WARNING}


@dataclass(frozen=True, slots=True)
class Recovery:
    """What to bring back, with what options of `up`, and how often.

    `interval_s` lies between two looks; within `token_deadline_s` a token that is due must come.
    """

    inventory: Inventory
    recipe: Recipe
    options: Options
    budget: Budget
    interval_s: float
    token_deadline_s: float

    async def attempt(self, seen: Breakage, tell: Tell) -> Brought:
        """Clear what is left of a broken cluster and start it anew; wait for one that loads.

        The cluster stays on record if this fails, for it is meant to be up.
        """
        tell(Step("cause", Outcome.DONE, seen.culprit, detail=seen.cause.removeprefix(f"{seen.culprit}: ")))
        options = replace(self.options, recovering=True, replace=seen.verdict is Verdict.BROKEN)
        return await bring_up(self.inventory, self.recipe, options, tell)


async def recover(recovery: Recovery, tell: Tell) -> Brought | None:
    """Bring the cluster back if it is broken, or wait for it while it loads; return `None` if it serves.

    Raises:
        NodeUnreachable: if too little can be seen to act.
        NotWanted: if no cluster is meant to be up.
        LockHeld: if another command works on the cluster.
        RunsOtherwise: if what loads is from another inventory, recipe or build.
        Degraded: once the budget is spent, or a node breaks again at once.
    """
    seen = await _look_once(recovery)
    if seen.verdict is Verdict.BROKEN and not seen.is_certain:
        seen = await _look_once(recovery)
    if seen.verdict is Verdict.WELL:
        return None
    if seen.verdict is Verdict.UNSURE:
        raise NodeUnreachable(
            f"too little can be seen to act: {seen.cause}",
            hint="bring the node back, then `clusterctl recover`; to go on without it, take it out of the "
            "inventory and run `clusterctl up --replace`",
        )
    if seen.verdict is Verdict.ABSENT:
        raise NotWanted(seen.cause, hint="`clusterctl up` starts it")
    outcome, _ = await _bring_back(recovery, tell, seen, History())
    if isinstance(outcome, ClusterctlError):
        raise outcome
    return outcome


async def watch(recovery: Recovery, tell: Tell) -> None:
    """Look again and again, and bring the cluster back whenever it is broken; return once cancelled.

    Cancelled in the midst of a restart, it undoes that and says so as `up` does.

    Raises:
        Degraded: once the budget is spent, or a node breaks again at once.
    """
    history, pause_s = History(), 0.0
    while True:
        try:
            await asyncio.sleep(pause_s)
            seen = await _wait_until_broken(recovery, tell)
        except asyncio.CancelledError:
            # Whoever ends a watch that only looks interrupts nothing.
            return
        outcome, history = await _bring_back(recovery, tell, seen, history)
        if isinstance(outcome, ClusterctlError):
            tell(Step("watch", Outcome.WARNING, detail=str(outcome)))
        pause_s = recovery.interval_s


async def _look_once(recovery: Recovery) -> Breakage:
    return judge_status(await read_status(recovery.inventory, deadline_s=recovery.token_deadline_s))


async def _wait_until_broken(recovery: Recovery, tell: Tell) -> Breakage:
    """Look until the cluster is broken for certain, or has been loading for too long; tell what changes."""
    clock = asyncio.get_running_loop().time
    last, since_s = None, clock()
    async with looking_out(
        recovery.inventory,
        deadline_s=recovery.token_deadline_s,
        token_every_s=TOKEN_EVERY_S,
        programs_every_s=0.0,  # the interval is the pace
    ) as lookout:
        while True:
            seen = await _judge(recovery, lookout)
            if last is None or (seen.verdict, seen.culprit) != (last.verdict, last.culprit):
                since_s = clock()
                outcome = _OUTCOMES.get(seen.verdict, Outcome.DONE)
                tell(Step("watch", outcome, detail=f"{seen.verdict}: {seen.cause}"))
            is_again = last is not None and last.verdict is seen.verdict
            if seen.verdict is Verdict.BROKEN and (seen.is_certain or is_again):
                return seen
            if seen.verdict is Verdict.LOADING and clock() - since_s > recovery.options.stall_timeout_s:
                return seen
            last = seen
            await asyncio.sleep(recovery.interval_s)


async def _judge(recovery: Recovery, lookout: Lookout) -> Breakage:
    try:
        return judge_status(await look(lookout))
    except ClusterctlError as error:
        return Breakage(Verdict.UNSURE, error.node or recovery.inventory.head.name, str(error))


async def _bring_back(
    recovery: Recovery, tell: Tell, seen: Breakage, history: History
) -> tuple[Brought | ClusterctlError, History]:
    """Try until the cluster serves, and return that with the history; or the error that hindered a trial.

    Raises:
        Degraded: once the budget is spent, or a node breaks again at once.
    """
    clock = asyncio.get_running_loop().time
    problem: ClusterctlError | None = None
    while True:
        broke_s = clock()
        if refusal := history.refusal(recovery.budget, broke_s, seen.culprit):
            raise await _give_up(recovery, refusal, seen, problem)
        await asyncio.sleep(history.pause_s(recovery.budget, broke_s))
        outcome: Brought | ClusterctlError
        try:
            outcome = await recovery.attempt(seen, tell)
        except ClusterctlError as error:
            outcome = problem = error
        if isinstance(outcome, ClusterctlError) and _is_hindrance(outcome):
            return outcome, history
        if seen.verdict is Verdict.BROKEN:
            history = history.with_restart(Restart(broke_s, clock(), seen.culprit))
        if isinstance(outcome, Brought):
            return outcome, history
        culprit = _first(outcome).node or seen.culprit
        tell(Step("recover", Outcome.FAILED, culprit, detail=outcome.message))
        seen = Breakage(Verdict.BROKEN, culprit, outcome.message)


def _is_hindrance(error: ClusterctlError) -> bool:
    """Whether it says that somebody else is at work, or a node gone: a reason to wait, and none to give up."""
    is_unreachable = error.exit_code == NodeUnreachable.exit_code  # also that of several nodes
    return is_unreachable or isinstance(error, LockHeld | NotWanted | RunsOtherwise)


def _first(error: ClusterctlError) -> ClusterctlError:
    """The error itself, or the first of several nodes': those of workers come before the head's."""
    return error.errors[0] if isinstance(error, NodesFailed) else error


async def _give_up(
    recovery: Recovery, refusal: str, seen: Breakage, problem: ClusterctlError | None
) -> ClusterctlError:
    log = _first(problem).log if problem else await _read_log(recovery.inventory, seen.culprit)
    hint = _first(problem).hint if problem else None
    return Degraded(
        f"given up: {refusal}; last cause: {seen.cause}",
        node=seen.culprit,
        hint=hint or f"`clusterctl logs {seen.culprit}` shows more; mend it, then `clusterctl recover`",
        log=log,
    )


async def _read_log(inventory: Inventory, name: str) -> tuple[str, ...]:
    """The end of a program's log; none if its node can't be reached or is not in the inventory."""
    node = next((node for node in inventory.nodes if node.name == name), None)
    if node is None:
        return ()
    try:
        transport = await open_transport(name, destination_of(node))
    except NodeUnreachable:
        return ()
    try:
        return (await read_log_tail(transport, inventory.cluster, name))[-SHOWN_LINES:]
    finally:
        await transport.close()
