"""How fast a long prompt is read.

A prompt goes through the devices in micro-batches of `--ubatch-size` tokens. Each device multiplies every token
with the weights that it uses, and reads each weight once for the whole micro-batch; then it hands over. Attention
is left out: at a depth of a few thousand tokens it takes little beside the weights. So is the output layer, which
is computed for the last token alone. The constants are in speed.yaml.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from clusterctl.llama.layer import Layer
from clusterctl.model import Offer, Share, Split
from clusterctl.planning.bandwidth import bandwidth_gb_s
from clusterctl.planning.data_sheets import data_sheet
from clusterctl.planning.memory import MemoryModel
from clusterctl.planning.token_time import TokenTime, speed_constants

OPERATIONS_PER_WEIGHT = 2


@dataclass(frozen=True, slots=True)
class PrefillSpeed:
    """Tokens per second of one long prompt: expected, and at most; `None` where the facts carry no figure."""

    tok_s: float | None = None
    ceiling_tok_s: float | None = None


@dataclass(frozen=True, slots=True)
class _Work:
    """What some layers do with one micro-batch of `tokens`.

    `active_elements` are the weights that one token is multiplied with, `touched_elements` and `read_bytes` what
    all its tokens use together: every expert that any of them is sent to.
    """

    tokens: int
    active_elements: int
    touched_elements: int
    read_bytes: int

    def computing_s(self, tflop_s: float, padding_tokens: float = 0) -> float:
        """Time for the arithmetic at this rate, each weight with so many tokens more."""
        products = self.active_elements * self.tokens + self.touched_elements * padding_tokens
        return OPERATIONS_PER_WEIGHT * products / (tflop_s * 1e12)

    def reading_s(self, gb_s: float) -> float:
        """Time to read the weights at this bandwidth."""
        return self.read_bytes / (gb_s * 1e9)


def prefill_speed(memory: MemoryModel, split: Split) -> PrefillSpeed:
    """The speed of reading one long prompt, at the beginning of a sequence.

    Expected is without overlap: one micro-batch passes all devices before the next one starts, as with RPC before
    llama.cpp pull request 18626. The ceiling is the slowest device's, at full rates, as if all worked at once.
    Unknown if the arithmetic of a device that takes part is, or if there are layers on the head's CPU.
    """
    tokens = memory.shape.micro_batch
    parts = [
        (share.offer, fp16_tflop_s(share.offer), _work(_layers(memory, share), tokens)) for share in split.shares
    ]
    known = [(offer, rate, work) for offer, rate, work in parts if rate is not None and work is not None]
    if split.cpu_layers or len(known) < len(parts):
        return PrefillSpeed()
    time = TokenTime(memory, depth_tokens=0)
    expected_s = sum(
        _expected_s(offer, rate, work) + time.handing_over_s(offer, tokens) for offer, rate, work in known
    )
    least_s = max(_least_s(offer, rate, work) for offer, rate, work in known)
    return PrefillSpeed(tokens / expected_s, tokens / least_s if least_s else None)


def fp16_tflop_s(offer: Offer) -> float | None:
    """The dense FP16 arithmetic that the user gives, else the data sheet's; `None` if there is neither."""
    return offer.fp16_tflop_s or data_sheet(offer.description).tflop_s


def _expected_s(offer: Offer, tflop_s: float, work: _Work) -> float:
    constants = speed_constants()
    computing_s = work.computing_s(tflop_s * constants.prefill_efficiency, constants.prefill_padding_tokens)
    return computing_s + work.reading_s(bandwidth_gb_s(offer) * constants.efficiency)


def _least_s(offer: Offer, tflop_s: float, work: _Work) -> float:
    return max(work.computing_s(tflop_s), work.reading_s(bandwidth_gb_s(offer)))


def _layers(memory: MemoryModel, share: Share) -> tuple[Layer, ...]:
    if share.first_layer is None or share.last_layer is None:
        return ()
    return memory.header.layers[share.first_layer : share.last_layer + 1]


def _work(layers: Iterable[Layer], tokens: int) -> _Work | None:
    """`None` if the layers do not tell how many weights they have."""
    active = touched = read_bytes = 0
    for layer in layers:
        if layer.elements is None or layer.active_elements is None:
            return None
        active += layer.active_elements
        touched += min(layer.elements, layer.active_elements * tokens)
        read_bytes += min(layer.weight_bytes, layer.active_bytes * tokens)
    return _Work(tokens, active, touched, read_bytes)
