"""The answer of `install`: a row per node, whether the builds match, what is still to be done."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from clusterctl.install_reports import InstalledNode, InstallReport
from clusterctl.model import Outcome
from clusterctl.ui.check import SKEW_WORDS, build_name
from clusterctl.ui.console import data_console
from clusterctl.ui.problems import hint_line
from clusterctl.ui.screen import Screen
from clusterctl.ui.tables import Column, Grid, outside
from clusterctl.ui.units import count

COLUMNS = tuple(map(Column, ("node", "before", "now", "says it is")))


def show_install(screen: Screen, report: InstallReport) -> None:
    """Print the report to stdout."""
    data_console(screen).print(install_view(report))


def install_view(report: InstallReport) -> Group:
    """Return the report as text."""
    return Group(Grid(COLUMNS, tuple(map(_row, report.nodes))), Text(), *_verdict(report))


def _row(node: InstalledNode) -> tuple[Text, ...]:
    return (
        outside(node.name, "bold"),
        outside(node.before or "-"),
        outside(node.now or "-"),
        outside(build_name(node.build)),
    )


def _verdict(report: InstallReport) -> Iterator[RenderableType]:
    pending = sum(step.outcome == Outcome.WOULD for step in report.steps)
    if report.skew is None:
        yield Text(f"dry run: {count(pending, 'step')} would change something; nothing was changed")
        return
    change = "" if report.changed else " (as before, nothing was changed)"
    yield Text.assemble((SKEW_WORDS[report.skew.status], "green"), change)
    if report.confirmed is False:
        yield outside(f"the programs don't say that they are {report.build}: what they say is above", "yellow")
    if report.restart:
        yield outside(f"still running the build before: {', '.join(report.restart)}")
        yield hint_line("clusterctl up --replace starts the cluster with the new one")
