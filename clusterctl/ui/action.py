"""The last words of `up` and `down`."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from clusterctl.model import Outcome
from clusterctl.reports import Access, ActionReport
from clusterctl.ui.console import data_console
from clusterctl.ui.endpoint import show_question
from clusterctl.ui.screen import Screen
from clusterctl.ui.tables import indented, outside
from clusterctl.ui.units import count


def show_action(screen: Screen, report: ActionReport) -> None:
    """Print to stdout where the cluster answers, or that it is gone, or what is left and why."""
    console = data_console(screen)
    pending = sum(step.outcome == Outcome.WOULD for step in report.steps)
    if pending:
        console.print(Text(f"dry run: {count(pending, 'step')} would change something; nothing was changed"))
    elif report.endpoint:
        _show_endpoint(console, report, report.endpoint)
        if not screen.quiet:
            _show_next_steps(console, report.endpoint, report.access)
    elif report.ok:
        reason = "nothing is left" if report.changed else "nothing was running"
        console.print(Text.assemble(("down", "green"), f": {reason}"))
    if report.left:
        still = "not all of it:" if report.endpoint else f"{count(len(report.left), 'thing')} left behind:"
        console.print(Text(still, "red"))
    for left in report.left:
        console.print(indented(outside(f"{left.node}: {left.reason}")))


def _show_endpoint(console: Console, report: ActionReport, endpoint: str) -> None:
    word = Text("up", "green") if report.ok else Text("partly up", "red")
    unchanged = "" if report.changed else " (it ran already, nothing was changed)"
    console.print(Text.assemble(word, ": ", outside(endpoint), unchanged))


def _show_next_steps(console: Console, endpoint: str, access: Access) -> None:
    show_question(console, endpoint, "the head", access)
    console.print(Text("\nsee how it does:", "bold"))
    console.out("clusterctl status", highlight=False)
