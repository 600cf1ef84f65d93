"""The reference of `--json`: every document, field by field, from the schemas that `clusterctl schema` prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from clusterctl.cli.documents import DOCUMENTS, ERROR, document_schema

Schema = Mapping[str, Any]

HEAD = """\
# JSON

With `--json` a command prints one document on stdout and nothing else. Fields are only ever added. Every field is
always there; what is unknown is `null`.

`clusterctl schema COMMAND` prints the JSON Schema of a command's document, and `clusterctl schema error` that of
what every command prints when it fails.
"""


def documents_page() -> Iterator[str]:
    """Yield the page's lines."""
    yield HEAD
    parts: dict[str, Schema] = {}
    for name in DOCUMENTS:
        schema = document_schema(name)
        parts |= schema.get("$defs", {})
        yield f"## {'A command that fails' if name == ERROR else name}\n"
        for option in schema.get("anyOf", [schema]):
            yield from _fields(_resolved(option, parts))
    yield "## Parts\n"
    shown = {document_schema(name).get("description") for name in DOCUMENTS}
    for name, part in sorted(parts.items()):
        if part.get("description") not in shown:
            yield f"### {name}\n"
            yield from _fields(part)


def _resolved(schema: Schema, parts: Mapping[str, Schema]) -> Schema:
    name = _part_name(schema)
    return parts[name] if name else schema


def _fields(schema: Schema) -> Iterator[str]:
    yield f"{schema['description']}\n"
    if "properties" not in schema:
        yield f"One of {_type(schema)}.\n"
        return
    yield "| field | type |"
    yield "| --- | --- |"
    for name, value in schema["properties"].items():
        yield f"| `{name}` | {_type(value)} |"
    yield ""


def _type(schema: Schema) -> str:
    kind = schema.get("type", "any")
    inner = schema.get("additionalProperties")
    if name := _part_name(schema):
        kind = f"[{name}](#{name.lower()})"
    elif "anyOf" in schema:
        kind = " or ".join(map(_type, schema["anyOf"]))
    elif "enum" in schema:
        kind = ", ".join(f"`{value}`" for value in schema["enum"])
    elif kind == "array":
        items = schema.get("prefixItems", [schema["items"]] if "items" in schema else [])
        kind = f"list of {', '.join(map(_type, items))}"
    elif kind == "object":
        kind = f"map of {_type(inner)}" if isinstance(inner, Mapping) else "map"
    return str(kind)


def _part_name(schema: Schema) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]
