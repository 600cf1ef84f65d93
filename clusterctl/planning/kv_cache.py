"""The size of llama.cpp's KV cache and recurrent state, exact to the byte.

Sources: llama.cpp src/llama-context.cpp (padding), src/llama-kv-cache.cpp, src/llama-kv-cache-iswa.cpp,
src/llama-memory-recurrent.cpp.
"""

from __future__ import annotations

from dataclasses import dataclass

from clusterctl.errors import UsageError
from clusterctl.llama.gguf_types import TENSOR_TYPES_BY_NAME, TensorType
from clusterctl.llama.layer import Layer
from clusterctl.llama.model_header import ModelHeader
from clusterctl.model import Workload

CELLS_STEP = 256
STATE_VALUE_BYTES = 4


@dataclass(frozen=True, slots=True)
class CacheShape:
    """How many cells a layer's cache has in each of `streams`, and how many tokens one batch computes.

    `cells` is for layers with full attention, `sliding_cells` for those with a sliding window.
    `micro_batch` is `--ubatch-size` as llama.cpp uses it, in whole rows of `sequences`.
    `least_value_width`: without flash attention values are stored transposed, all as wide as the widest.
    """

    cells: int
    sliding_cells: int
    streams: int
    sequences: int
    micro_batch: int
    least_value_width: int

    @classmethod
    def of(cls, header: ModelHeader, workload: Workload) -> CacheShape:
        """The shape for this model served in this way."""
        sequences = max(1, workload.slots)
        streams = 1 if workload.kv_unified else sequences
        cells = padded(padded(workload.context, CELLS_STEP) // streams, CELLS_STEP)
        batch = min(workload.batch_physical, workload.batch_logical, cells * streams)
        window = (header.window or 0) * (sequences if workload.kv_unified else 1)
        sliding = cells if workload.swa_full else padded(min(cells, window + batch), CELLS_STEP)
        widest = 0 if workload.flash_attention else max(layer.v_width for layer in header.layers)
        return cls(cells, sliding, streams, sequences, padded(batch, sequences), widest)


def kv_bytes(header: ModelHeader, workload: Workload, layer: int) -> int:
    """Bytes that layer number `layer` keeps of the context: its KV cache and its recurrent state.

    Raises `UsageError` for a cache type llama.cpp does not know or can't use with this model.
    """
    return layer_cache_bytes(header.layers[layer], CacheShape.of(header, workload), workload)


def layer_cache_bytes(layer: Layer, shape: CacheShape, workload: Workload) -> int:
    """As `kv_bytes`, for a shape already known."""
    cells = (shape.sliding_cells if layer.is_sliding else shape.cells) * shape.streams
    v_width = max(layer.v_width, shape.least_value_width) if layer.v_width else 0
    row = _row_bytes(layer.k_width, workload.kv_type_k) + _row_bytes(v_width, workload.kv_type_v)
    return row * cells + STATE_VALUE_BYTES * layer.state_width * shape.sequences


def _row_bytes(width: int, name: str) -> int:
    kind = cache_type(name)
    if width % kind.block_elements:
        raise UsageError(
            f"the KV cache type {name} stores blocks of {kind.block_elements} values, but a row has {width}",
            hint="use f16 for kv_cache.k and kv_cache.v",
        )
    return kind.row_bytes(width)


def cache_type(name: str) -> TensorType:
    """The type llama.cpp calls `name` in `--cache-type-k`; raises `UsageError` for an unknown one."""
    kind = TENSOR_TYPES_BY_NAME.get(name.lower())
    if kind is None:
        raise UsageError(f"unknown KV cache type {name!r}", hint="llama.cpp knows f16, q8_0, q4_0 and others")
    return kind


def padded(size: int, step: int) -> int:
    """The smallest multiple of `step` that is not below `size`."""
    return -(-size // step) * step
