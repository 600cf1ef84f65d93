"""Types of parameters that the shell can complete. Loaded whenever Tab is pressed, so nothing here is heavy."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from clusterctl.cli.ssh_aliases import ssh_aliases
from clusterctl.config.glance import files_with, node_names


class OwnFile(click.ParamType[str]):
    """A file of ours, known by a key that it must have; any other file if none is near."""

    def __init__(self, name: str, key: str, folder: str) -> None:
        self.name = name
        self._key = key
        self._folder = folder

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Offer the files that are near, or leave it to the shell."""
        near = _items(files_with(self._key, incomplete, self._folder), incomplete)
        return near or [CompletionItem(incomplete, type="file")]


class NodeName(click.ParamType[str]):
    """A node of the inventory."""

    name = "node"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Offer the nodes of the inventory that is named on the command line or in the environment."""
        inventory = _inventory_of(ctx)
        return _items(node_names(Path(inventory).expanduser()), incomplete) if inventory else []


class HostName(click.ParamType[str]):
    """A host to reach by SSH, with a user before it if need be."""

    name = "host"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Offer the aliases of `~/.ssh/config`, also after `user@`."""
        user, at, _ = incomplete.rpartition("@")
        return _items((user + at + alias for alias in ssh_aliases(Path.home())), incomplete)


INVENTORY = OwnFile("inventory", "nodes", "inventory")
RECIPE = OwnFile("recipe", "model", "recipes")
NODE = NodeName()
HOST = HostName()


def _items(values: Iterable[str], begun: str) -> list[CompletionItem]:
    return [CompletionItem(value) for value in values if value.startswith(begun)]


def _inventory_of(ctx: click.Context) -> str | None:
    """The inventory that the command would take: one typed after it, one typed before it, the environment's."""
    contexts = [ctx] if ctx.parent is None else [ctx, ctx.parent]
    typed = [each for each in contexts if each.get_parameter_source("inventory") is ParameterSource.COMMANDLINE]
    inventory: str | None = (typed or [ctx])[0].params.get("inventory")
    return inventory
