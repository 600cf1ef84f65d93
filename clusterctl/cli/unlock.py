"""`clusterctl unlock`."""

from __future__ import annotations

import click

from clusterctl.cli.app import App, pass_app, to_json
from clusterctl.cli.main import GlobalCommand
from clusterctl.cli.running import run
from clusterctl.cluster.lock import break_lock
from clusterctl.cluster.membership import destination_of
from clusterctl.config.inventory import Inventory
from clusterctl.remote.target import open_transport
from clusterctl.small_reports import UnlockReport
from clusterctl.ui.safe import one_line


@click.command(cls=GlobalCommand)
@pass_app
def unlock(app: App) -> None:
    """Remove the lock that a crashed command left behind.

    A lock expires by itself a minute after its holder's last sign of life; a living holder loses it here.
    """
    holder = run(_unlock(app.load_inventory()))
    if app.as_json:
        click.echo(to_json(UnlockReport(ok=True, changed=holder is not None, holder=holder)))
    else:
        click.echo(f"removed the lock: {one_line(holder)}" if holder else "there was no lock")


async def _unlock(inventory: Inventory) -> str | None:
    head = await open_transport(inventory.head.name, destination_of(inventory.head))
    try:
        return await break_lock(head, inventory.cluster)
    finally:
        await head.close()
