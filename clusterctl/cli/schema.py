"""`clusterctl schema`."""

from __future__ import annotations

import json

import click

from clusterctl.cli.app import App, pass_app
from clusterctl.cli.documents import DOCUMENTS, document_schema
from clusterctl.cli.main import GlobalCommand
from clusterctl.config.schema import inventory_schema, recipe_schema

FILES = {"inventory": inventory_schema, "recipe": recipe_schema}


@click.command(cls=GlobalCommand)
@click.argument("kind", type=click.Choice([*FILES, *DOCUMENTS]), metavar="KIND")
@pass_app
def schema(app: App, kind: str) -> None:
    """Print the JSON Schema of an inventory, a recipe, or a command's --json.

    KIND is `inventory`, `recipe`, a command such as `status`, or `error` for what every command prints with --json
    when it fails. Editors complete and check a file that begins with `# yaml-language-server: $schema=FILE`.
    """
    document = FILES[kind]() if kind in FILES else document_schema(kind)
    click.echo(json.dumps(document, indent=None if app.as_json else 2))
