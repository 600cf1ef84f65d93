"""Headers of published models from models.yaml: the same tensors as in their files, without the files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from clusterctl.llama.gguf import GgufHeader, Tensor
from clusterctl.llama.gguf_types import TENSOR_TYPES_BY_NAME
from clusterctl.llama.model_header import ModelHeader

Row = Sequence[int | str]


def model_header(name: str, file: str) -> ModelHeader:
    """Return the header of the model that models.yaml calls `name`, as of a file at the path `file`."""
    model = _models()[name]
    keys = {f"{model['architecture']}.{key}": value for key, value in model["keys"].items()}
    metadata = {"general.architecture": model["architecture"], "general.name": name, **keys}
    return ModelHeader.from_parts([GgufHeader(file, 3, metadata, tuple(_tensors(model)), data_offset=0)])


def has_more_bits(layer: int, n_layer: int) -> bool:
    """Whether llama-quantize's K mixes give a layer's most sensitive tensors a larger type.

    Source: llama.cpp src/llama-quant.cpp (`use_more_bits`).
    """
    eighth = n_layer // 8
    return layer < eighth or layer >= 7 * n_layer // 8 or (layer - eighth) % 3 == 2


def _tensors(model: Mapping[str, Any]) -> Iterator[Tensor]:
    for name, row in model["outside"].items():
        yield _tensor(name, row, more_bits=False)
    n_layer, first, pattern = model["keys"]["block_count"], model.get("first", []), model["pattern"]
    for layer in range(n_layer):
        kind = first[layer] if layer < len(first) else pattern[layer % len(pattern)]
        for name, row in model["kinds"][kind].items():
            yield _tensor(f"blk.{layer}.{name}", row, more_bits=has_more_bits(layer, n_layer))


def _tensor(name: str, row: Row, *, more_bits: bool) -> Tensor:
    *shape, types = row
    usual, _, larger = str(types).partition("/")
    kind = larger if larger and more_bits else usual
    return Tensor(name, tuple(map(int, shape)), TENSOR_TYPES_BY_NAME[kind.lower()], offset=0)


@cache
def _models() -> dict[str, dict[str, Any]]:
    text = Path(__file__).with_name("models.yaml").read_text(encoding="utf-8")
    models: dict[str, dict[str, Any]] = yaml.safe_load(text)
    return models
