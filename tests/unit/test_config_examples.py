"""Every file in inventory/ and recipes/ loads, and the JSON Schemas agree with the loader."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from clusterctl.config.inventory import Inventory
from clusterctl.config.loading import load_inventory, load_recipe
from clusterctl.config.recipe import Recipe
from clusterctl.config.schema import inventory_schema, recipe_schema
from tests.unit.test_config_inventory import CONTRACT as INVENTORY_WITH_EVERY_KEY
from tests.unit.test_config_recipe import CONTRACT as RECIPE_WITH_EVERY_KEY

ROOT = Path(__file__).parents[2]
INVENTORIES = sorted((ROOT / "inventory").glob("*.y*ml"))
RECIPES = sorted((ROOT / "recipes").glob("*.y*ml"))
MINIMAL: dict[str, Any] = {"version": 1, "cluster": "c", "nodes": [{"name": "h", "role": "head"}]}


def schema_faults(schema: dict[str, Any], data: object) -> list[str]:
    return [error.message for error in Draft202012Validator(schema).iter_errors(data)]


def parsed(file: Path) -> object:
    data: object = yaml.safe_load(file.read_text())
    return data


def keys_of(model: type[BaseModel]) -> set[str]:
    """Return every key of a model and of the sections in it."""
    keys = set()
    for name, field in model.model_fields.items():
        keys.add(field.alias or name)
        keys |= keys_in(field.annotation)
    return keys


def keys_in(annotation: object) -> set[str]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return keys_of(annotation)
    return set().union(*map(keys_in, get_args(annotation)))


@pytest.mark.parametrize("file", INVENTORIES, ids=lambda file: file.name)
def test_every_inventory_loads_and_fits_the_schema(file: Path) -> None:
    assert load_inventory(file, {}).head
    assert schema_faults(inventory_schema(), parsed(file)) == []


@pytest.mark.parametrize("file", RECIPES, ids=lambda file: file.name)
def test_every_recipe_loads_and_fits_the_schema(file: Path) -> None:
    assert load_recipe(file, {}).name
    assert schema_faults(recipe_schema(), parsed(file)) == []


@pytest.mark.parametrize(("model", "name"), [(Inventory, "inventory"), (Recipe, "recipes")])
def test_the_commented_example_shows_every_key(model: type[BaseModel], name: str) -> None:
    text = (ROOT / name / "example.yaml").read_text()
    assert [key for key in keys_of(model) if f"{key}:" not in text] == []


def test_the_example_recipe_fits_the_example_inventory() -> None:
    inventory = load_inventory(ROOT / "inventory" / "example.yaml", {})
    assert load_recipe(ROOT / "recipes" / "example.yaml", {}, inventory).split.layers


def test_the_demo_takes_its_places_from_the_environment() -> None:
    environment = {"CLUSTERCTL_LLAMA": "/srv/llama", "CLUSTERCTL_MODEL": "/srv/m.gguf"}
    inventory = load_inventory(ROOT / "inventory" / "local-demo.yaml", environment)
    recipe = load_recipe(ROOT / "recipes" / "smollm2-demo.yaml", environment, inventory)
    assert {node.llama.bin_dir for node in inventory.nodes} == {"/srv/llama"}
    assert recipe.model.path == "/srv/m.gguf"


def test_the_schemas_take_what_the_loader_takes() -> None:
    assert schema_faults(inventory_schema(), yaml.safe_load(INVENTORY_WITH_EVERY_KEY)) == []
    assert schema_faults(recipe_schema(), yaml.safe_load(RECIPE_WITH_EVERY_KEY)) == []


@pytest.mark.parametrize("schema", [inventory_schema(), recipe_schema()], ids=["inventory", "recipe"])
class TestSchemas:
    def test_it_is_a_schema_of_its_draft_and_its_own_example_fits(self, schema: dict[str, Any]) -> None:
        Draft202012Validator.check_schema(schema)
        assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
        assert all(schema_faults(schema, example) == [] for example in schema["examples"])

    def test_every_key_is_described_and_no_other_is_allowed(self, schema: dict[str, Any]) -> None:
        for section in (schema, *schema["$defs"].values()):
            if "properties" in section:
                assert section["additionalProperties"] is False
            for key, value in section.get("properties", {}).items():
                definition = value.get("$ref", "").rpartition("/")[2]
                described = {**schema["$defs"].get(definition, {}), **value}
                assert described.get("description"), key


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"cluster": "Home Lab"},
        {"netwrk": "10.0.0.0/24"},
        {"nodes": []},
        {"nodes": [{"name": "h"}]},
        {"nodes": [{"name": "h", "role": "boss"}]},
        {"nodes": [{"name": "h", "role": "head", "rpc": {"port": 70000}}]},
        {"nodes": [{"name": "h", "role": "head", "speed": {"bandwidth_gb_s": {"bad key": 1}}}]},
        {"defaults": {"name": "x"}},
    ],
)
def test_the_schema_refuses_what_the_loader_refuses(change: dict[str, Any]) -> None:
    assert schema_faults(inventory_schema(), MINIMAL) == []
    assert schema_faults(inventory_schema(), MINIMAL | change)


def test_the_schema_takes_variables_in_place_of_any_value() -> None:
    node = {"name": "${NAME}", "role": "head", "serve_only": "${S:-false}", "rpc": {"port": "${PORT:-50052}"}}
    assert schema_faults(inventory_schema(), MINIMAL | {"nodes": [node]}) == []
