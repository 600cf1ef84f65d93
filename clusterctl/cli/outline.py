"""What the shell needs to know of a command, from a table: importing the command itself would make Tab slow.

`python -m tools.reference` writes the table from the commands.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import click

from clusterctl.cli.completing import HOST, NODE

TYPES: dict[str, click.ParamType[Any]] = {"node": NODE, "host": HOST, "path": click.Path()}


def outlined_params(command: str) -> list[click.Parameter]:
    """Return the parameters of a command as far as they can be completed."""
    table = json.loads(files("clusterctl.cli").joinpath("outline.json").read_text("utf-8"))
    return [_param(row) for row in table[command]]


def outline(command: click.Command) -> list[dict[str, Any]]:
    """Return a command's rows of the table."""
    return [_row(param) for param in command.params]


def _row(param: click.Parameter) -> dict[str, Any]:
    row: dict[str, Any] = {"declared": param.opts, "nargs": param.nargs}
    if isinstance(param.type, click.Choice):
        row["choices"] = list(param.type.choices)
    elif param.type.name in TYPES:
        row["type"] = param.type.name
    if isinstance(param, click.Option):
        negated = param.secondary_opts
        row["declared"] = [f"{param.opts[0]}/{negated[0]}"] if negated else param.opts
        row |= {"is_flag": param.is_flag, "multiple": param.multiple, "help": param.help}
    return row


def _param(row: dict[str, Any]) -> click.Parameter:
    choices = row.pop("choices", None)
    row["type"] = click.Choice(choices) if choices else TYPES.get(row.pop("type", ""))
    declared = row.pop("declared")
    if "is_flag" not in row:
        return click.Argument(declared, **row)
    return click.Option(declared, **row)
