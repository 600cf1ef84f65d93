"""What every command gets: the global options, and the few ways in which commands read and show.

This module is loaded for `--help` as well, so it imports what costs time only where it is used.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click
from click.core import ParameterSource

from clusterctl.cli import output
from clusterctl.errors import UsageError
from clusterctl.ui.screen import Color, Screen

if TYPE_CHECKING:
    from clusterctl.config.inventory import Inventory
    from clusterctl.config.recipe import Recipe


Report = TypeVar("Report")

INVENTORY_VARIABLE = "CLUSTERCTL_INVENTORY"


@dataclass(frozen=True, slots=True)
class App:
    """The global options, from before or after the command, or from the environment."""

    inventory: str | None = None
    recipe: str | None = None
    as_json: bool = False
    verbosity: int = 0
    quiet: bool = False
    no_progress: bool = False
    color: str = "auto"

    def load_inventory(self) -> Inventory:
        """Read the inventory.

        Raises:
            UsageError: if none is named; there is no hidden default, so nobody acts on hosts by accident.
            ConfigError: with all faults of the file.
        """
        from clusterctl.config.loading import load_inventory  # noqa: PLC0415

        if self.inventory is None:
            raise UsageError(
                "no inventory is named",
                hint="pass -i FILE or set CLUSTERCTL_INVENTORY; `clusterctl init HOST…` writes one",
            )
        return load_inventory(Path(self.inventory), os.environ)

    def load_recipe(self, inventory: Inventory) -> Recipe:
        """Read the recipe; the nodes that it names must be in the inventory.

        Raises:
            UsageError: if none is named.
            ConfigError: with all faults of the file.
        """
        recipe = self.load_recipe_if_named(inventory)
        if recipe is None:
            raise UsageError(
                "no recipe is named",
                hint="pass -r FILE or set CLUSTERCTL_RECIPE; recipes/example.yaml explains every key",
            )
        return recipe

    def load_recipe_if_named(self, inventory: Inventory) -> Recipe | None:
        """Read the recipe, or return `None` if none is named."""
        from clusterctl.config.loading import load_recipe  # noqa: PLC0415

        return None if self.recipe is None else load_recipe(Path(self.recipe), os.environ, inventory)

    def screen(self) -> Screen:
        """How to write: data on stdout, everything else on stderr."""
        is_inherited = self.inventory in (None, os.environ.get(INVENTORY_VARIABLE))
        program = ("clusterctl",) if is_inherited else ("clusterctl", "-i", str(self.inventory))
        return Screen(Color(self.color), self.no_progress, self.verbosity, self.quiet, program)

    def show(self, report: Report, view: Callable[[Screen, Report], None]) -> None:
        """Print a report: as one JSON document with `--json`, else as `view` draws it."""
        with output.read_or_not():
            if self.as_json:
                click.echo(to_json(report))
            else:
                view(self.screen(), report)


def demand_use(options: Mapping[str, str], *, when: str) -> None:
    """Refuse options that were typed although they do nothing; `options` are their names by parameter.

    Raises:
        UsageError: with the options.
    """
    context = click.get_current_context()
    typed = [
        option
        for name, option in options.items()
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    ]
    if typed:
        raise UsageError(f"{' and '.join(typed)} would do nothing {when}", hint="leave it out")


def to_json(report: object) -> str:
    """A report, or plain data, as the text of one JSON document."""
    return json.dumps(asdict(report) if is_dataclass(report) and not isinstance(report, type) else report)


pass_app = click.make_pass_decorator(App)
