"""Load an inventory or a recipe: from a file, or from text that a file held."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from clusterctl.config.document import Document
from clusterctl.config.faults import checked
from clusterctl.config.files import read_text
from clusterctl.config.inventory import Inventory
from clusterctl.config.inventory_rules import inventory_faults, with_defaults
from clusterctl.config.reading import read_document
from clusterctl.config.recipe import Recipe
from clusterctl.config.recipe_rules import recipe_faults
from clusterctl.errors import ConfigError

NO_INVENTORY = "`clusterctl init HOST…` looks at your machines and writes one"
MAP_OF_INVENTORY = f"an inventory has the keys `version`, `cluster` and `nodes`; {NO_INVENTORY}"
LOOKS_LIKE_RECIPE = "this looks like a recipe, which -r names; -i names the inventory"
LOOKS_LIKE_INVENTORY = "this looks like an inventory, which -i names; -r names the recipe"
NO_RECIPE = "a recipe needs four keys: `version: 1`, `name: …`, `model: {path: …}` and `context: …`"


def load_inventory(path: Path, environment: Mapping[str, str]) -> Inventory:
    """Return the checked inventory of a file, variables filled in from `environment`.

    Raises:
        UsageError: the file can't be read.
        ConfigError: all faults of the file.
    """
    return parse_inventory(read_text(path, hint=NO_INVENTORY), str(path), environment)


def parse_inventory(text: str, file: str, environment: Mapping[str, str]) -> Inventory:
    """Return the checked inventory in `text`; `file` is its name in faults.

    Raises:
        ConfigError: all faults of the text.
    """
    with _hinting(MAP_OF_INVENTORY):
        document = with_defaults(read_document(text, file, environment))
    with _hinting(LOOKS_LIKE_RECIPE if _is_like(document, "model", "nodes") else None):
        return checked(Inventory, document, inventory_faults(document))


def load_recipe(path: Path, environment: Mapping[str, str], inventory: Inventory | None = None) -> Recipe:
    """Return the checked recipe of a file, variables filled in from `environment`.

    With an inventory, the nodes that a manual split names must be in it and able to take layers.

    Raises:
        UsageError: the file can't be read.
        ConfigError: all faults of the file.
    """
    return parse_recipe(read_text(path, hint=NO_RECIPE), str(path), environment, inventory)


def parse_recipe(
    text: str, file: str, environment: Mapping[str, str], inventory: Inventory | None = None
) -> Recipe:
    """Return the checked recipe in `text`; `file` is its name in faults, `inventory` as in `load_recipe`.

    Raises:
        ConfigError: all faults of the text.
    """
    with _hinting(NO_RECIPE):
        document = read_document(text, file, environment)
    with _hinting(LOOKS_LIKE_INVENTORY if _is_like(document, "nodes", "model") else None):
        return checked(Recipe, document, recipe_faults(document, inventory))


@contextmanager
def _hinting(hint: str | None) -> Iterator[None]:
    """Give the faults found in the body this hint, if there is one."""
    try:
        yield
    except ConfigError as error:
        error.hint = hint or error.hint
        raise


def _is_like(document: Document, other: str, own: str) -> bool:
    """Whether a file has the chief key of the other kind of file, and not that of its own."""
    return document.get(other) is not None and document.get(own) is None
