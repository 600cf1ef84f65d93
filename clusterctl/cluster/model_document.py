"""What a model's header says as a small document of plain data, and back: enough to plan with, without the file.

Equal layers in a row stand once, with their `count`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from itertools import groupby
from typing import Any

from pydantic import TypeAdapter, ValidationError

from clusterctl.config.document import dotted
from clusterctl.errors import UsageError
from clusterctl.llama.model_header import ModelHeader

VERSION = 1
MOST_LAYERS = 4096


def model_document(header: ModelHeader) -> dict[str, object]:
    """Return the document of a header."""
    rows = [{"count": len(list(same)), **asdict(layer)} for layer, same in groupby(header.layers)]
    return {"version": VERSION, **asdict(header), "layers": rows}


def model_of(document: Mapping[str, Any]) -> ModelHeader:
    """Return the header that a document describes.

    Raises:
        UsageError: for another version, a missing or impossible value, or no layer at all.
    """
    if document.get("version") != VERSION:
        raise UsageError(f"version is {document.get('version')!r}, and {VERSION} is known")
    try:
        header = TypeAdapter(ModelHeader).validate_python({**document, "layers": _all_layers(document)})
    except ValidationError as error:
        raise UsageError(faults_of(error)) from error
    if _least(asdict(header)) < 0 or header.n_embd == 0 or header.active_bytes_per_token == 0:
        raise UsageError("a size is negative, or nothing is read for a token")
    return header


def faults_of(error: ValidationError, *within: str) -> str:
    """Return all faults of a document, or of the part of it that lies `within` keys, each with its place."""
    faults = error.errors(include_url=False, include_input=False)
    return "; ".join(f"{dotted((*within, *fault['loc']))}: {fault['msg'].lower()}" for fault in faults)


def _all_layers(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    layers: list[dict[str, Any]] = []
    rows = document.get("layers")
    for row in rows if isinstance(rows, list) else []:
        count = row.get("count", 1) if isinstance(row, dict) else 0
        if not isinstance(count, int) or not 1 <= count <= MOST_LAYERS - len(layers):
            break
        layers += [row] * count
    else:
        if layers:
            return layers
    raise UsageError(f"layers must be a list of maps, with counts that add up to at most {MOST_LAYERS}")


def _least(value: object) -> int:
    """The smallest whole number anywhere in plain data."""
    if isinstance(value, dict):
        return min(map(_least, value.values()), default=0)
    if isinstance(value, tuple):
        return min(map(_least, value), default=0)
    return value if isinstance(value, int) else 0
