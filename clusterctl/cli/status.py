"""`clusterctl status`."""

from __future__ import annotations

import click

from clusterctl.cli.app import App, pass_app
from clusterctl.cli.main import GlobalCommand
from clusterctl.cli.running import run
from clusterctl.cluster.status import read_status
from clusterctl.errors import Degraded, NodeUnreachable
from clusterctl.ui.status import show_status

EXIT_CODES = {"degraded": Degraded.exit_code, "unknown": NodeUnreachable.exit_code}


@click.command(cls=GlobalCommand)
@pass_app
def status(app: App) -> int:
    """Show what runs, where, since when, and how well.

    Asks processes, sockets and the head's API, never the port of a worker. Exit codes: 0 up, loading or down;
    9 degraded; 3 unknown, because a node can't be reached.
    """
    report = run(read_status(app.load_inventory()))
    app.show(report, show_status)
    return EXIT_CODES.get(report.state, 0)
