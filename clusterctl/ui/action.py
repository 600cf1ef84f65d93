"""The last words of `up` and `down`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from clusterctl.model import Outcome
from clusterctl.reports import ActionReport, LeftReport
from clusterctl.ui.console import data_console
from clusterctl.ui.endpoint import show_question
from clusterctl.ui.problems import hint_line
from clusterctl.ui.screen import Screen
from clusterctl.ui.shell import command_text
from clusterctl.ui.tables import indented, outside
from clusterctl.ui.units import count


def show_action(screen: Screen, report: ActionReport) -> None:
    """Print to stdout where the cluster answers, or that it is gone, or what is left and why."""
    console = data_console(screen)
    pending = sum(step.outcome == Outcome.WOULD for step in report.steps)
    if pending:
        console.print(Text(f"dry run: {count(pending, 'step')} would change something; nothing was changed"))
    elif report.endpoint:
        console.print(_endpoint_line(report, report.endpoint))
        if not (screen.quiet or report.dry_run):
            _show_next_steps(console, screen, report, report.endpoint)
    elif report.ok:
        console.print(_down_line(report))
    for heading, rows in _left(report):
        console.print(Text(heading, "red"))
        for left in rows:
            console.print(indented(outside(f"{left.node}: {left.reason}")))
            if left.hint:
                console.print(indented(hint_line(left.hint), 4))
    if report.spared:
        console.print(outside(f"still running: {', '.join(report.spared)}"))


def _endpoint_line(report: ActionReport, endpoint: str) -> Text:
    if report.dry_run:
        return Text.assemble("dry run: it runs as asked for at ", outside(endpoint), "; nothing would change")
    unchanged = "" if report.changed else " (it ran already, nothing was changed)"
    if not report.waited:
        state = "still loading, not verified" if report.changed else "not waited for"
        return Text.assemble(("started", "yellow"), ": ", outside(endpoint), f"{unchanged}; {state}")
    word = Text("up", "green") if report.ok else Text("partly up", "red")
    return Text.assemble(word, ": ", outside(endpoint), unchanged)


def _down_line(report: ActionReport) -> Text:
    reason = "nothing is left" if report.changed else "nothing was running"
    where = f" on {', '.join(report.nodes)}" if report.nodes else ""
    return Text.assemble(("down", "green"), ": ", outside(reason + where))


def _left(report: ActionReport) -> Iterator[tuple[str, Sequence[LeftReport]]]:
    """What is left, under its headings."""
    if report.endpoint:
        heading = "left on nodes that are not of it any more:" if report.ok else "not all of it:"
        groups = [(heading, report.left)]
    else:
        seen = tuple(left for left in report.left if left.seen)
        unseen = tuple(left for left in report.left if not left.seen)
        groups = [
            (f"{count(len(seen), 'thing')} left behind:", seen),
            (f"{count(len(unseen), 'node')} not seen:", unseen),
        ]
    yield from ((heading, rows) for heading, rows in groups if rows)


def _show_next_steps(console: Console, screen: Screen, report: ActionReport, endpoint: str) -> None:
    if report.waited:
        show_question(console, screen, endpoint, "the head", report.access)
    console.print(Text("\nsee how it does:", "bold"))
    console.out(command_text((*screen.program, "status"), {}, console.width), highlight=False)
