"""A status that stays: live on a terminal, one line for each change elsewhere. All of it is data, on stdout."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Group
from rich.live import Live
from rich.text import Text

from clusterctl.reports import StatusReport
from clusterctl.ui.console import data_console, say
from clusterctl.ui.safe import one_line
from clusterctl.ui.screen import Screen
from clusterctl.ui.status import STYLES, status_view, traffic_text


class StatusDisplay:
    """Shows the reports it is called with. A context manager, since a live view must give the terminal back."""

    def __init__(self, screen: Screen) -> None:
        self._console = data_console(screen)
        self._told: object = None
        self._live: Live | None = None
        if self._console.is_terminal and not (self._console.is_dumb_terminal or screen.no_progress):
            # Redrawn only when something is new, so that a calm cluster is a calm screen.
            self._live = Live(
                console=self._console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
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

    def __call__(self, report: StatusReport) -> None:
        """Show one report."""
        if self._live:
            now = Text(time.strftime("%H:%M:%S"), "dim")
            self._live.update(Group(status_view(report), Text(), now), refresh=True)
        elif self._told != (news := news_of(report)):
            self._told = news
            say(self._console, change_line(report))


def news_of(report: StatusReport) -> object:
    """Return what makes a report worth a line of its own if it differs from the last one's."""
    return (
        report.state,
        report.head.pid,
        report.head.health,
        tuple((worker.node, worker.state) for worker in report.workers),
        tuple(problem.message for problem in report.problems if problem.code != "no-progress-seen"),
        report.progress.verdict,
        bool(report.traffic.slots_busy),
    )


def change_line(report: StatusReport) -> Text:
    """Return a report as one line: the time, the state, then what is wrong, or else what the head does."""
    wrong = "; ".join(problem.message for problem in report.problems)
    detail = one_line(wrong or traffic_text(report.traffic))
    line = Text.assemble((time.strftime("%H:%M:%S"), "dim"), " ", (report.state, STYLES.get(report.state, "")))
    return line.append(f": {detail}") if detail else line
