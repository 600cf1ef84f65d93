"""`clusterctl logs`."""

from __future__ import annotations

import click

from clusterctl.cli.app import App, pass_app, to_json
from clusterctl.cli.main import GlobalCommand
from clusterctl.cli.running import run
from clusterctl.cluster.logs import read_logs
from clusterctl.config.inventory import Inventory
from clusterctl.errors import UsageError
from clusterctl.ui.logs import LogPrinter


@click.command(cls=GlobalCommand)
@click.argument("nodes", nargs=-1, metavar="[NODE]...")
@click.option("-f", "--follow", is_flag=True, help="Go on with what is added, until Ctrl-C.")
@click.option(
    "-n", "--lines", type=click.IntRange(min=0), default=100, show_default=True, help="Lines of each node to show."
)
@pass_app
def logs(app: App, nodes: tuple[str, ...], follow: bool, lines: int) -> None:
    """Show the logs of the head and the workers, prefixed by node."""
    if follow and app.as_json:
        raise UsageError("--json prints one document, and --follow never ends", hint="leave one of them out")
    run(_show(app, app.load_inventory(), nodes, lines, follow))


async def _show(app: App, inventory: Inventory, nodes: tuple[str, ...], lines: int, follow: bool) -> None:
    read = read_logs(inventory, nodes, lines, follow=follow)
    if app.as_json:
        click.echo(to_json({"lines": [{"node": line.node, "text": line.text} async for line in read]}))
        return
    printer = LogPrinter(app.screen(), nodes or [node.name for node in inventory.nodes])
    async for line in read:
        printer(line.node, line.text)
