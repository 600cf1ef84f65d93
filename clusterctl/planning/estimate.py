"""How fast the model will decode, read prompts and load, as far as known facts carry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clusterctl.model import Estimate, Share, Split
from clusterctl.planning.bandwidth import bandwidth_gb_s
from clusterctl.planning.data_sheets import unknown_bandwidth_gb_s
from clusterctl.planning.memory import MemoryModel
from clusterctl.planning.prefill import prefill_speed
from clusterctl.planning.token_time import TokenTime, speed_constants

GB = 1e9
BITS = 8


@dataclass(frozen=True, slots=True)
class TimePart:
    """A part of the time of one token: what it goes into, in words."""

    cause: str
    seconds: float


def estimate(memory: MemoryModel, split: Split) -> Estimate:
    """The expected speed of a plan while the context is short, as benchmarks are published.

    The decode figure is typically within a factor of 1.25, prefill within 1.31 (speed.yaml says of what); the
    ceilings are what data sheets would allow. Prefill needs the arithmetic of every device, and the loading time
    the bit rate of the network, if anything is sent over it.
    """
    time = TokenTime(memory, depth_tokens=0)
    prefill = prefill_speed(memory, split)
    sending = sending_s(split)
    reading = memory.header.total_bytes / (speed_constants().read_gb_s * GB)
    return Estimate(
        decode_tok_s=decode_tok_s(memory, split),
        decode_ceiling_tok_s=1 / _ceiling_s(split, time),
        prefill_tok_s=prefill.tok_s,
        prefill_ceiling_tok_s=prefill.ceiling_tok_s,
        load_s=None if sending is None else reading + sending,
        bound_by=max(time_parts(split, time), key=lambda part: part.seconds).cause,
    )


def decode_tok_s(memory: MemoryModel, split: Split) -> float:
    """Tokens per second of one sequence while the context is short."""
    time = TokenTime(memory, depth_tokens=0)
    return 1 / sum(part.seconds for part in time_parts(split, time))


def time_parts(split: Split, time: TokenTime) -> Iterator[TimePart]:
    """What the time of one token goes into; the parts add up to it."""
    for share in split.shares:
        seconds = time.reading_s(bandwidth_gb_s(share.offer), *slot_bounds(split, share))
        yield TimePart(f"memory bandwidth of {share.offer.label}", seconds)
    if split.cpu_layers:
        yield TimePart("memory bandwidth of the head's CPU", host_s(split, time))
    yield TimePart("launching kernels, a little for each layer", time.launching_s(0, split.n_layer))
    yield TimePart("hops between devices", sum(time.handing_over_s(share.offer) for share in split.shares))


def host_s(split: Split, time: TokenTime) -> float:
    """Time of one token that the layers on the head's CPU take."""
    return time.reading_s(unknown_bandwidth_gb_s("cpu"), 0, split.cpu_layers)


def slot_bounds(split: Split, share: Share) -> tuple[int, int]:
    """The first slot of a share, and the one after its last."""
    first = split.n_layer if share.first_layer is None else share.first_layer
    return first, first + share.slots


def sending_s(split: Split) -> float | None:
    """Time to send the workers their weights, one after another; `None` if a bit rate that matters is unknown."""
    constants = speed_constants()
    total_s = 0.0
    for share in split.shares:
        if share.offer.is_local:
            continue
        gbit_s = share.offer.link.gbit_s
        if gbit_s is None:
            return None
        gb_s = min(constants.send_gb_s, gbit_s / BITS * constants.link_efficiency)
        total_s += share.memory.model_bytes / (gb_s * GB)
    return total_s


def _ceiling_s(split: Split, time: TokenTime) -> float:
    rates = [(bandwidth_gb_s(share.offer), slot_bounds(split, share)) for share in split.shares]
    rates.append((unknown_bandwidth_gb_s("cpu"), (0, split.cpu_layers)))
    return sum(time.read_bytes(first, end) / (gb_s * GB) for gb_s, (first, end) in rates)
