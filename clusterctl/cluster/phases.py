"""Phases: a title, what to do, how to undo it. The list of them in `up` is its architecture."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from clusterctl.cluster.steps import Tell, telling
from clusterctl.errors import ClusterctlError
from clusterctl.model import Outcome, Step

Context = TypeVar("Context")


@dataclass(frozen=True, slots=True)
class Phase(Generic[Context]):
    """One phase: `run` returns a new context; `undo`, if any, also copes with a half-done `run`."""

    title: str
    run: Callable[[Context], Awaitable[Context]]
    undo: Callable[[Context], Awaitable[None]] | None = None
    needed: Callable[[Context], bool] = lambda _: True


async def run_phases(
    phases: Sequence[Phase[Context]], context: Context, tell: Tell, *, dry: bool = False
) -> Context:
    """Run the phases in order and return the last context.

    On failure and on Ctrl-C every entered phase is undone, last first; an undo that fails is noted on the
    error that caused it, and the others still run. A second Ctrl-C leaves the rest as it is, and that is noted.
    Notes on the interrupt itself say how things stand. In a dry run, a phase that has an undo is told as one that
    would change something.
    """
    entered: list[Phase[Context]] = []
    try:
        for phase in phases:
            if not phase.needed(context):
                continue
            entered.append(phase)
            would = dry and phase.undo is not None
            with telling(tell, phase.title, outcome=Outcome.WOULD if would else Outcome.DONE):
                context = await phase.run(context)
    except BaseException as error:
        await _undo(entered, context, tell, error)
        raise
    return context


async def _undo(entered: Sequence[Phase[Context]], context: Context, tell: Tell, error: BaseException) -> None:
    waiting = [(phase.title, phase.undo) for phase in entered if phase.undo is not None]
    is_interrupt, is_undone = isinstance(error, asyncio.CancelledError), True
    if is_interrupt and not waiting:
        error.add_note("nothing had been started")
        return
    if is_interrupt:
        detail = "what this run has started is being undone; a second interrupt leaves it as it is"
        tell(Step("interrupted", Outcome.WARNING, detail=detail))
    while waiting:
        title, undo = waiting[-1]
        try:
            await undo(context)
            tell(Step(title, Outcome.UNDONE))
        except Exception as problem:  # whatever it is, the others still have to be undone
            reason = problem if isinstance(problem, ClusterctlError) else repr(problem)
            error.add_note(f"could not undo `{title}`: {reason}")
            is_undone = False
        except asyncio.CancelledError:
            titles = ", ".join(f"`{title}`" for title, _ in reversed(waiting))
            error.add_note(f"interrupted again, so this was not undone: {titles}; `clusterctl down` does it")
            return
        waiting.pop()
    if is_interrupt and is_undone:
        error.add_note("what was started has been undone")
