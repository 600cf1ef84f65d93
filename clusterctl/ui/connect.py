"""What `connect` says once the way is open."""

from __future__ import annotations

from rich.text import Text

from clusterctl.reports import ConnectReport
from clusterctl.ui.console import data_console
from clusterctl.ui.endpoint import show_question
from clusterctl.ui.screen import Screen
from clusterctl.ui.tables import outside


def show_connect(screen: Screen, report: ConnectReport) -> None:
    """Print to stdout where the head answers now, and a question to ask it."""
    console = data_console(screen)
    console.print(
        Text.assemble(("connected", "green"), ": ", report.url, " leads to ", outside(report.target), " of ")
        + outside(report.node)
    )
    if not screen.quiet:
        show_question(console, screen, report.url, report.node, report.access)
        console.print(Text("\nCtrl-C ends it", "dim"))
