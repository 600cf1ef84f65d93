"""`clusterctl status`."""

from __future__ import annotations

import click

from clusterctl.cli.app import App, demand_use, pass_app
from clusterctl.cli.main import GlobalCommand
from clusterctl.cli.running import run
from clusterctl.cluster.progress import DEADLINE_S
from clusterctl.cluster.status import WATCH_INTERVAL_S, read_status, watch_status
from clusterctl.errors import Degraded, NodeUnreachable, UsageError
from clusterctl.ui.status import show_status
from clusterctl.ui.watch import StatusDisplay

EXIT_CODES = {
    "degraded": Degraded.exit_code,
    "wedged": Degraded.exit_code,
    "unknown": NodeUnreachable.exit_code,
}


@click.command(cls=GlobalCommand)
@click.option("--watch", is_flag=True, help="Stay, and show what changes, until Ctrl-C.")
@click.option(
    "--interval",
    "interval_s",
    type=click.FloatRange(min=0.2),
    default=WATCH_INTERVAL_S,
    show_default=True,
    metavar="S",
    help="Seconds between two looks of --watch.",
)
@click.option(
    "--timeout",
    "deadline_s",
    type=click.FloatRange(min=1),
    default=DEADLINE_S,
    show_default=True,
    metavar="S",
    help="Seconds within which a token that is due must come.",
)
@click.option("--passive", is_flag=True, help="Ask an idle head for no token.")
@pass_app
def status(app: App, watch: bool, interval_s: float, deadline_s: float, passive: bool) -> int:
    """Show what runs, where, since when, and how well.

    Asks processes, sockets and the head's API, never the port of a worker. A head that works is watched until
    its work has advanced; one that idles is asked for one token. Exit codes: 0 up, loading or down; 9 degraded,
    or wedged, which is all alive without a token coming; 3 unknown, because a node can't be reached.
    """
    if not watch:
        demand_use({"interval_s": "--interval"}, when="without --watch")
    inventory = app.load_inventory()
    if not watch:
        report = run(read_status(inventory, deadline_s=deadline_s, asks_token=not passive))
        app.show(report, show_status)
        return EXIT_CODES.get(report.state, 0)
    if app.as_json:
        raise UsageError("--json prints one document, and --watch never ends", hint="leave one of them out")
    with StatusDisplay(app.screen()) as display:
        try:
            run(
                watch_status(
                    inventory, display, interval_s=interval_s, deadline_s=deadline_s, asks_token=not passive
                )
            )
        except KeyboardInterrupt:
            return 0
