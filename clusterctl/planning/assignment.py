"""The cheapest way to lay a row of slots on a row of devices, exactly, by dynamic programming."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from clusterctl.model import Offer
from clusterctl.planning.slot_ranges import SlotRanges

# llama.cpp src/llama.cpp (`llama_max_devices`).
MAX_DEVICES = 16


@dataclass(frozen=True, slots=True)
class Assignment:
    """Slots for each offer, 0 for one left out, and in words why it got so many."""

    slots: tuple[int, ...]
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DeviceCost:
    """What a strategy charges for one device, in a unit of its own.

    Both sequences have an entry for each boundary between slots, from the start of the first slot to the end
    of the last. `slots` is the running sum of what the slots cost on this device; `boundary` is charged where
    the part of this device ends, or would end if it has none. `use` is charged once if it holds anything.
    """

    slots: Sequence[float]
    boundary: Sequence[float]
    use: float


def cheapest(ranges: SlotRanges, offers: Sequence[Offer], costs: Sequence[DeviceCost]) -> tuple[int, ...] | None:
    """Slots for each offer, 0 for one left out; `None` if no assignment in this order fits.

    Exact, because what a device costs depends on its own range only. For every boundary, the cheapest way to
    place all slots before it on the devices so far is kept; one device more is a minimum over where its part
    may start.
    """
    best: list[float] = [0.0] + [inf] * ranges.count
    starts_of = []
    for offer, cost in zip(offers, costs, strict=True):
        best, starts = _with_one_more(best, ranges, offer, cost)
        starts_of.append(starts)
    return _counts(starts_of) if best[-1] < inf else None


def fits_at_all(ranges: SlotRanges, offers: Sequence[Offer]) -> bool:
    """Whether any assignment in this order fits, with as many devices as a head can take.

    Without devices, whether the head's memory holds a model that lies on its CPU as a whole.
    """
    kept = largest_devices(offers)
    if not kept:
        return not ranges.count and ranges.host_suffices(is_whole=True)
    free = DeviceCost(slots=[0] * (ranges.count + 1), boundary=[0] * (ranges.count + 1), use=0)
    return cheapest(ranges, kept, [free] * len(kept)) is not None


def largest_devices(offers: Sequence[Offer]) -> tuple[Offer, ...]:
    """Those with most memory that one head can take, in their order."""
    by_size = sorted(range(len(offers)), key=lambda index: -offers[index].budget_bytes)
    return tuple(offers[index] for index in sorted(by_size[:MAX_DEVICES]))


def _with_one_more(
    best: Sequence[float], ranges: SlotRanges, offer: Offer, cost: DeviceCost
) -> tuple[list[float], list[int]]:
    """The cheapest totals with one device more, and where its part starts; at the end where it has none."""
    # A range costs what its start says here, plus what depends on its end alone.
    entry = [total - slots for total, slots in zip(best, cost.slots, strict=True)]
    totals, starts = [], []
    for end, (lowest, fits_from_first) in enumerate(ranges.starts(offer)):
        total, start = best[end], end
        least = min(entry[lowest:end], default=inf)
        if fits_from_first:
            least = min(least, entry[0])
        if least + cost.slots[end] + cost.use < total:
            total = least + cost.slots[end] + cost.use
            start = 0 if fits_from_first and least == entry[0] else entry.index(least, lowest)
        totals.append(total + cost.boundary[end])
        starts.append(start)
    return totals, starts


def _counts(starts_of: Sequence[Sequence[int]]) -> tuple[int, ...]:
    counts = []
    end = len(starts_of[0]) - 1
    for starts in reversed(starts_of):
        counts.append(end - starts[end])
        end = starts[end]
    return tuple(reversed(counts))
