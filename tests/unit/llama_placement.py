"""llama.cpp's rule for which layer goes to which device, replayed in its own arithmetic."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Sequence

_FLOAT32 = struct.Struct("<f")


def layer_devices(n_layer: int, gpu_layers: int, tensor_split: Sequence[float]) -> tuple[int | None, ...]:
    """The device of each slot (all layers, then the output layer); `None` is the head's CPU.

    `gpu_layers` is `--n-gpu-layers`, `tensor_split` has one share per device. Source: llama.cpp
    src/llama-model.cpp (`load_tensors`): float32 sums, and the first device whose sum exceeds the slot's
    fraction. Integer shares that add up to the offloaded slots come out as exactly those numbers of slots, so
    a plan passes slot counts as `--tensor-split` and need not repeat this.
    """
    slots = n_layer + 1
    offloaded = min(gpu_layers, slots)
    sums: list[float] = []
    total = 0.0
    for share in tensor_split:
        total = _float32(total + _float32(share))
        sums.append(total)
    bounds = [_float32(partial / total) for partial in sums]
    first = slots - offloaded
    return (None,) * first + tuple(
        bisect_right(bounds, _float32(_float32(index) / _float32(offloaded))) for index in range(offloaded)
    )


def _float32(value: float) -> float:
    """The nearest float32; one operation on float32 values, rounded so, is exactly C's result."""
    rounded: float = _FLOAT32.unpack(_FLOAT32.pack(value))[0]
    return rounded
