"""The answer of `init`: what was found, why it is as it is, and the next command."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from clusterctl.model import Severity
from clusterctl.reports import CheckReport, InitReport
from clusterctl.ui.check import MATCH, check_view
from clusterctl.ui.console import data_console
from clusterctl.ui.screen import Screen
from clusterctl.ui.shell import command_text
from clusterctl.ui.tables import indented, outside


def show_init(screen: Screen, report: InitReport) -> None:
    """Print the report to stdout; the command line is never wrapped, so that it can be copied."""
    console = data_console(screen)
    console.print(init_view(report, is_verbose=screen.verbosity > 0))
    argv = ("clusterctl", "-i", report.path, "check")
    console.out(command_text(argv, {}, console.width), highlight=False)


def init_view(report: InitReport, *, is_verbose: bool) -> Group:
    """Return all of the report but the command line."""
    errors = [p for node in report.nodes for p in node.problems if p.severity is Severity.ERROR]
    checked = CheckReport(report.skew.status == MATCH and not errors, report.skew, report.nodes)
    return Group(check_view(checked, is_verbose=is_verbose), Text(), *_reasons(report), Text(), _written(report))


def _reasons(report: InitReport) -> Iterator[RenderableType]:
    for reason in report.reasons:
        yield indented(outside(reason))


def _written(report: InitReport) -> Text:
    return Text.assemble(
        ("written", "green"), ": ", outside(report.path, "bold"), "; see whether the nodes can meet:"
    )
