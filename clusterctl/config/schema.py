"""JSON Schemas of the two files, as people write them: for editors, and for `clusterctl schema`."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from clusterctl.config.inventory import Inventory
from clusterctl.config.recipe import Recipe

JsonSchema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
VARIABLE = {
    "description": "Filled in from the environment: ${VAR}, or ${VAR:-default}.",
    "type": "string",
    "pattern": r"\$\{",
}
OR_VARIABLE = {"$ref": "#/$defs/Variable"}
NARROW_TYPES = ("boolean", "integer", "number")
NARROWING_KEYWORDS = frozenset({"const", "enum", "format", "pattern"})
ANNOTATIONS = frozenset({"default", "description"})

INVENTORY_EXAMPLE = {
    "version": 1,
    "cluster": "homelab",
    "network": "10.10.0.0/24",
    "nodes": [
        {"name": "strix1", "host": "strix1.lan", "role": "worker", "backend": "rocm"},
        {"name": "rtx", "host": "192.168.1.30", "role": "head", "backend": "cuda"},
    ],
}
RECIPE_EXAMPLE = {
    "version": 1,
    "name": "qwen3-235b",
    "model": {"path": "/models/Qwen3-235B-A22B-Q4_K_M-00001-of-00003.gguf"},
    "context": 32768,
}


def inventory_schema() -> JsonSchema:
    """Return the JSON Schema (draft 2020-12) of an inventory, before defaults are merged."""
    return _schema(Inventory, INVENTORY_EXAMPLE)


def recipe_schema() -> JsonSchema:
    """Return the JSON Schema (draft 2020-12) of a recipe."""
    return _schema(Recipe, RECIPE_EXAMPLE)


def _schema(model: type[BaseModel], example: JsonSchema) -> JsonSchema:
    generated = _as_written(model.model_json_schema())
    head = {"$schema": DIALECT, "title": f"clusterctl {model.__name__.lower()}"}
    definitions = {**generated.pop("$defs"), "Variable": VARIABLE}
    return {**head, **generated, "examples": [example], "$defs": definitions}


def _as_written(schema: JsonSchema) -> JsonSchema:
    """Return a generated schema without pydantic's titles and empty defaults, and open to `${VAR}`."""
    written = {key: value for key, value in schema.items() if not _is_noise(key, value)}
    for keyword in {"properties", "patternProperties", "$defs"} & written.keys():
        written[keyword] = {name: _as_written(inner) for name, inner in written[keyword].items()}
    for keyword in {"anyOf", "oneOf"} & written.keys():
        choices = map(_as_written, written[keyword])
        written[keyword] = [part for choice in choices for part in choice.get("anyOf", [choice])]
    if "items" in written:
        written["items"] = _as_written(written["items"])
    if "patternProperties" in written:
        written["additionalProperties"] = False
    if written.get("type") in NARROW_TYPES or NARROWING_KEYWORDS & written.keys():
        return _or_variable(written)
    return written


def _is_noise(key: str, value: object) -> bool:
    return key == "title" or (key == "default" and (value is None or isinstance(value, dict)))


def _or_variable(schema: JsonSchema) -> JsonSchema:
    rule = {key: value for key, value in schema.items() if key not in ANNOTATIONS}
    said = {key: value for key, value in schema.items() if key in ANNOTATIONS}
    return {**said, "anyOf": [rule, OR_VARIABLE]}
