"""`strategy: memory`: every device gets whole layers in proportion to its room for them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from clusterctl.model import Offer
from clusterctl.planning.assignment import Assignment, DeviceCost, cheapest
from clusterctl.planning.slot_ranges import SlotRanges
from clusterctl.planning.wording import gib


def split_by_memory(ranges: SlotRanges, offers: Sequence[Offer]) -> Assignment | None:
    """Slots in proportion to room; `None` if no split in this order fits.

    Where the proportional split does not fit, for layers differ in size, it is the one that fits and whose
    boundaries are the fewest layers away from there.
    """
    rooms = [ranges.room_bytes(offer) if ranges.can_take_part(offer) else 0 for offer in offers]
    targets = apportion(ranges.count, _weights(ranges, rooms))
    costs = [
        DeviceCost(
            slots=[0] * (ranges.count + 1),
            boundary=[abs(boundary - target) for boundary in range(ranges.count + 1)],
            use=0,
        )
        for target in accumulate(targets)
    ]
    slots = cheapest(ranges, offers, costs)
    if slots is None:
        return None
    total = gib(sum(rooms))
    return Assignment(
        slots,
        tuple(
            f"has {gib(room)} of the {total} of room for layers{_difference(target, got, ranges.count)}"
            for room, target, got in zip(rooms, targets, slots, strict=True)
        ),
    )


def _weights(ranges: SlotRanges, rooms: Sequence[int]) -> Sequence[int]:
    """By what the slots are handed out. Where only the output layer is, all that have room for it are equal."""
    if not any(rooms):
        return [1] * len(rooms)
    return [min(room, 1) for room in rooms] if ranges.count == 1 else rooms


def _difference(target: int, got: int, count: int) -> str:
    if got != target:
        return f": {target} of {count} slots by that, {got} so that every device's part fits"
    if got:
        return ""
    if count == 1:
        return ": the output layer, all that is left, goes to the last device with room for it"
    return ": less than one layer's part"


def apportion(count: int, weights: Sequence[int]) -> tuple[int, ...]:
    """Whole numbers that add up to `count`, in proportion to `weights`, by largest remainder.

    Of equal remainders the later ones get the rest: the head's own devices come last, and hand over nothing. The
    weights must not all be 0.
    """
    total = sum(weights)
    whole, remainders = zip(*(divmod(count * weight, total) for weight in weights), strict=True)
    left = count - sum(whole)
    rounded_up = set(sorted(range(len(weights)), key=lambda index: (-remainders[index], -index))[:left])
    return tuple(part + (index in rounded_up) for index, part in enumerate(whole))
