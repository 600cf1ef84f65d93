"""`strategy: speed`: the devices and layers that decode a token in the least time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

from clusterctl.model import Offer
from clusterctl.planning.assignment import Assignment, DeviceCost, cheapest
from clusterctl.planning.bandwidth import bandwidth_gb_s
from clusterctl.planning.slot_ranges import SlotRanges
from clusterctl.planning.token_time import TokenTime


def split_by_speed(ranges: SlotRanges, offers: Sequence[Offer], time: TokenTime) -> Assignment | None:
    """The split with the least time per token, out of all that fit; `None` if none does.

    A device that costs more time than it saves is left out.
    """
    costs = [_cost(ranges, offer, time) for offer in offers]
    slots = cheapest(ranges, offers, costs)
    if slots is None:
        return None
    bounds = list(pairwise(accumulate(slots, initial=0)))
    times_s = [
        cost.use + cost.slots[end] - cost.slots[first] if first < end else 0
        for cost, (first, end) in zip(costs, bounds, strict=True)
    ]
    total = f"{1e3 * sum(times_s):.1f} ms per token"
    reasons = []
    for offer, (first, end), time_s in zip(offers, bounds, times_s, strict=True):
        speed = f"{bandwidth_gb_s(offer):g} GB/s"
        if first == end:
            reasons.append(f"not needed: the others hold the model, and {speed} would not make it faster")
        else:
            full = _is_full(ranges, offer, ranges.first + first, ranges.first + end)
            reasons.append(f"{speed}, {1e3 * time_s:.1f} of {total}{', full' if full else ''}")
    return Assignment(slots, tuple(reasons))


def _cost(ranges: SlotRanges, offer: Offer, time: TokenTime) -> DeviceCost:
    gb_s = bandwidth_gb_s(offer)
    return DeviceCost(
        slots=[
            time.reading_s(gb_s, ranges.first, end) + time.launching_s(ranges.first, end)
            for end in range(ranges.first, ranges.end + 1)
        ],
        boundary=[0] * (ranges.count + 1),
        use=time.handing_over_s(offer),
    )


def _is_full(ranges: SlotRanges, offer: Offer, first: int, end: int) -> bool:
    """Whether the device could take no neighbouring slot more."""
    more = [(first - 1, end)] if first > ranges.first else []
    more += [(first, end + 1)] if end < ranges.end else []
    return bool(more) and not any(ranges.fits(offer, *wider) for wider in more)
