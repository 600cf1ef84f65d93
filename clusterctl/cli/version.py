"""`clusterctl version`."""

from __future__ import annotations

import click

from clusterctl import __version__
from clusterctl.cli.app import App, pass_app, to_json
from clusterctl.cli.main import GlobalCommand
from clusterctl.small_reports import VersionReport


@click.command(cls=GlobalCommand)
@pass_app
def version(app: App) -> None:
    """Print the version of clusterctl."""
    click.echo(to_json(VersionReport(__version__)) if app.as_json else f"clusterctl {__version__}")
