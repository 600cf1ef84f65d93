"""Steps as they happen: a live display on a terminal, plain lines elsewhere. All of it goes to stderr."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from rich.console import Group
from rich.live import Live
from rich.text import Text

from clusterctl.model import Outcome, Step
from clusterctl.reports import StepReport
from clusterctl.ui.console import notes_console, say
from clusterctl.ui.safe import one_line
from clusterctl.ui.screen import Screen
from clusterctl.ui.units import duration

WAITING_INTERVAL_S = 5.0


@dataclass(frozen=True, slots=True)
class Mark:
    """How an outcome is shown; `word` is empty where the mark alone is plain enough."""

    symbol: str
    ascii: str
    style: str
    word: str = ""


MARKS = {
    Outcome.STARTED: Mark("•", "*", "dim"),
    Outcome.WAITING: Mark("•", "*", "dim"),
    Outcome.DONE: Mark("✓", "+", "green"),
    Outcome.UNCHANGED: Mark("=", "=", "dim", "unchanged"),
    Outcome.WOULD: Mark("~", "~", "yellow", "would change"),
    Outcome.FAILED: Mark("✗", "x", "red", "failed"),
    Outcome.UNDONE: Mark("↩", "<", "yellow", "undone"),
    Outcome.WARNING: Mark("!", "!", "yellow", "warning"),
}


@dataclass(slots=True)
class _Running:
    """A step that has not ended; `told_s` is when a plain line last spoke of it."""

    step: Step
    began_s: float
    told_s: float


class Progress:
    """Shows the steps it is called with, from any number of nodes at once, and keeps those that ended.

    A context manager, since a live display must leave the terminal as it was. `clock` counts seconds.
    """

    def __init__(self, screen: Screen, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._console = notes_console(screen)
        self._only_failures = screen.quiet
        self._running: dict[tuple[str | None, str], _Running] = {}
        self._ended: list[StepReport] = []
        can_animate = self._console.is_terminal and not self._console.is_dumb_terminal
        self._live: Live | None = None
        if can_animate and not (screen.quiet or screen.no_progress):
            # stdout keeps its own way, so that data never ends up among the notes.
            self._live = Live(
                get_renderable=self._display, console=self._console, transient=True, redirect_stdout=False
            )

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()

    def __call__(self, step: Step) -> None:
        """Take one event."""
        if step.ended:
            self._end(step)
            return
        now_s = self._clock()
        running = self._running.setdefault((step.node, step.title), _Running(step, now_s, now_s))
        changed = step.detail != running.step.detail
        running.step = step
        if changed and not (self._live or self._only_failures):
            self._tell_waiting(running, now_s)

    @property
    def steps(self) -> tuple[StepReport, ...]:
        """The ended steps, in the order of their ends."""
        return tuple(self._ended)

    def _end(self, step: Step) -> None:
        self._running.pop((step.node, step.title), None)
        self._ended.append(StepReport(step.title, step.node, step.outcome.value, step.seconds))
        if step.outcome is Outcome.FAILED or not self._only_failures:
            say(self._console, self._line(step, step.seconds))

    def _tell_waiting(self, running: _Running, now_s: float) -> None:
        if now_s - running.told_s >= WAITING_INTERVAL_S:
            running.told_s = now_s
            say(self._console, self._line(running.step, now_s - running.began_s))

    def _display(self) -> Group:
        """The running steps, one line each; called from the refreshing thread too, hence the copy."""
        now_s = self._clock()
        steps = list(self._running.values())
        lines = [self._line(running.step, now_s - running.began_s) for running in steps]
        for line in lines:
            line.no_wrap, line.overflow = True, "ellipsis"
        return Group(*lines)

    def _line(self, step: Step, seconds: float) -> Text:
        mark = MARKS[step.outcome]
        symbol = mark.ascii if self._console.options.ascii_only else mark.symbol
        line = Text.assemble((symbol, mark.style), " ", one_line(step.title))
        if step.node:
            line.append("  ").append(one_line(step.node), "bold")
        if mark.word:
            line.append("  ").append(mark.word, mark.style)
        if seconds >= 0.05:
            line.append(f"  {duration(seconds)}", "dim")
        if detail := one_line(step.detail):
            line.append(f"  {detail}", "red" if step.outcome is Outcome.FAILED else "dim")
        return line
