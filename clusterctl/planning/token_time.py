"""How long decoding one token takes.

A token passes the devices one after the other. Each reads all weights of its layers that this token uses, and
the KV cache so far; that is bound by memory bandwidth. The constants are in speed.yaml.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate

from clusterctl.data import read_data
from clusterctl.model import Link, Offer
from clusterctl.planning.kv_cache import layer_cache_bytes
from clusterctl.planning.memory import MemoryModel

ACTIVATION_BYTES = 4


@dataclass(frozen=True, slots=True)
class SpeedConstants:
    """What speed.yaml says."""

    efficiency: float
    layer_ms: float
    hop_ms: float
    device_ms: float
    read_gb_s: float
    send_gb_s: float
    link_efficiency: float
    prefill_efficiency: float
    prefill_padding_tokens: float


@cache
def speed_constants() -> SpeedConstants:
    """The constants of speed.yaml."""
    return SpeedConstants(**read_data("clusterctl.planning", "speed.yaml"))


class TokenTime:
    """Seconds for one token of one sequence that has `depth_tokens` of context behind it.

    Ranges of slots are `first` to `end - 1`; slot `n_layer` is the output layer.
    """

    def __init__(self, memory: MemoryModel, depth_tokens: int) -> None:
        self._constants = speed_constants()
        self._n_layer = memory.header.n_layer
        self._read_bytes = _read_bytes(memory, depth_tokens)
        self._payload_bits = 2 * memory.header.n_embd * ACTIVATION_BYTES * 8

    def read_bytes(self, first: int, end: int) -> int:
        """Bytes that these slots read."""
        return self._read_bytes[end] - self._read_bytes[first]

    def reading_s(self, gb_s: float, first: int, end: int) -> float:
        """Time that reading takes on a device of this bandwidth."""
        return self.read_bytes(first, end) / (gb_s * 1e9 * self._constants.efficiency)

    def launching_s(self, first: int, end: int) -> float:
        """Time that goes into starting the kernels of these slots' layers."""
        layers = min(end, self._n_layer) - min(first, self._n_layer)
        return layers * self._constants.layer_ms / 1e3

    def handing_over_s(self, offer: Offer, tokens: int = 1) -> float:
        """Time to hand over to this device, whatever it holds: a hop over the network if it is remote."""
        return self._constants.device_ms / 1e3 + (0 if offer.is_local else self.hop_s(offer.link, tokens))

    def hop_s(self, link: Link, tokens: int = 1) -> float:
        """Time to send the activations of some tokens over a network and back."""
        constants = self._constants
        bits = self._payload_bits * tokens
        carrying = bits / (link.gbit_s * 1e9 * constants.link_efficiency) if link.gbit_s else 0
        return (constants.hop_ms + (link.round_trip_ms or 0)) / 1e3 + carrying


def _read_bytes(memory: MemoryModel, depth_tokens: int) -> list[int]:
    """Running sum over all slots of what one token reads: weights in use, and the cache of its sequence."""
    header, shape = memory.header, memory.shape
    depth = min(depth_tokens, shape.cells)
    own = replace(shape, cells=depth, sliding_cells=min(depth, shape.sliding_cells), streams=1, sequences=1)
    layers = (layer.active_bytes + layer_cache_bytes(layer, own, memory.workload) for layer in header.layers)
    return list(accumulate((*layers, header.output_bytes), initial=0))
