"""`clusterctl schema`."""

from __future__ import annotations

import json

import click

from clusterctl.cli.app import App, pass_app
from clusterctl.cli.main import GlobalCommand
from clusterctl.config.schema import inventory_schema, recipe_schema

SCHEMAS = {"inventory": inventory_schema, "recipe": recipe_schema}


@click.command(cls=GlobalCommand)
@click.argument("kind", type=click.Choice(list(SCHEMAS)))
@pass_app
def schema(app: App, kind: str) -> None:
    """Print the JSON Schema of an inventory or a recipe.

    Editors complete and check a file that begins with `# yaml-language-server: $schema=FILE`.
    """
    click.echo(json.dumps(SCHEMAS[kind](), indent=None if app.as_json else 2))
