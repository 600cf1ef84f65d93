"""`strategy: memory`: every device gets whole layers in proportion to its room for them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from clusterctl.model import Offer
from clusterctl.planning.assignment import DeviceCost, cheapest
from clusterctl.planning.slot_ranges import SlotRanges
from clusterctl.planning.wording import gib


def split_by_memory(ranges: SlotRanges, offers: Sequence[Offer]) -> tuple[int, ...] | None:
    """Slots for each offer in proportion to its room; `None` if no split in this order fits.

    Where that split does not fit, for layers differ in size, it is the one that fits with boundaries the
    fewest layers away.
    """
    targets = memory_targets(ranges, offers)
    zeros = [0] * (ranges.count + 1)
    costs = [
        DeviceCost(slots=zeros, boundary=[abs(end - target) for end in range(ranges.count + 1)], use=0)
        for target in accumulate(targets)
    ]
    return cheapest(ranges, offers, costs)


def memory_targets(ranges: SlotRanges, offers: Sequence[Offer]) -> tuple[int, ...]:
    """Slots in proportion to room, before it is known whether that fits."""
    rooms = [ranges.room_bytes(offer) if ranges.can_take_part(offer) else 0 for offer in offers]
    return apportion(ranges.count, rooms if any(rooms) else [offer.budget_bytes + 1 for offer in offers])


def apportion(count: int, weights: Sequence[int]) -> tuple[int, ...]:
    """Whole numbers that add up to `count`, in proportion to `weights`, by largest remainder.

    Of equal remainders the earlier ones get the rest. The weights must not all be 0.
    """
    total = sum(weights)
    parts = [divmod(count * weight, total) for weight in weights]
    whole = [part for part, _ in parts]
    by_remainder = sorted(range(len(parts)), key=lambda index: -parts[index][1])
    for index in by_remainder[: count - sum(whole)]:
        whole[index] += 1
    return tuple(whole)


def memory_reasons(ranges: SlotRanges, offers: Sequence[Offer], slots: Sequence[int]) -> tuple[str, ...]:
    """Why each device got what it got."""
    targets = memory_targets(ranges, offers)
    rooms = [ranges.room_bytes(offer) for offer in offers]
    reasons = []
    for room, target, got in zip(rooms, targets, slots, strict=True):
        part = f"{gib(room)} of the {gib(sum(rooms))} that all devices have for layers"
        if got == target:
            reasons.append(part if got else f"{part} are less than one layer's part")
        elif got:
            reasons.append(f"{part}, which would be {target} of {ranges.count}; {got} so that all devices fit")
        else:
            reasons.append(f"{part}, but no layer fits here between its neighbours")
    return tuple(reasons)
