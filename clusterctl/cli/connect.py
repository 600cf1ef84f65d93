"""`clusterctl connect`."""

from __future__ import annotations

import asyncio
import contextlib

import click

from clusterctl.cli.app import App, pass_app
from clusterctl.cli.main import GlobalCommand
from clusterctl.cli.running import run
from clusterctl.cluster.connect import forwarding
from clusterctl.config.inventory import Inventory
from clusterctl.ui.connect import show_connect


@click.command(cls=GlobalCommand)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="P",
    help="Port on this machine, 0 for any that is free. Default: the head's.",
)
@pass_app
def connect(app: App, port: int | None) -> None:
    """Forward the head's port to this machine, until Ctrl-C.

    A head that listens on its own loopback address alone, as recipes do by default, is reached through SSH and by
    nobody else. Exit codes: 7 the head does not run, or has stopped; 3 its machine can't be reached.
    """
    run(_connect(app, app.load_inventory(), port))


async def _connect(app: App, inventory: Inventory, port: int | None) -> None:
    async with forwarding(inventory, port) as forwarded:
        app.show(forwarded.report, show_connect)
        # Ctrl-C is how it ends.
        with contextlib.suppress(asyncio.CancelledError):
            await forwarded.watch()
