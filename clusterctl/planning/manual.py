"""`strategy: manual`: the layers that a recipe gives to nodes or devices, checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, pairwise

from clusterctl.errors import PlanDoesNotFit, UsageError
from clusterctl.model import Offer
from clusterctl.planning.assignment import MAX_DEVICES, Assignment, largest_devices
from clusterctl.planning.proportional import apportion, split_by_memory
from clusterctl.planning.shortage import what_would_fit
from clusterctl.planning.slot_ranges import SlotRanges
from clusterctl.planning.wording import gib


def split_by_hand(ranges: SlotRanges, offers: Sequence[Offer], layers: Mapping[str, int]) -> Assignment:
    """Slots as `layers` says, which counts layers by `node` or `node/device`; the output layer comes on top.

    A node's number is divided over its devices in proportion to their memory.

    Raises:
        UsageError: for a name that offers no device, more devices than a head can take, or a sum that is not
            the model's number of layers.
        PlanDoesNotFit: if a device can't hold its part; names every such device.
    """
    slots = _layers_by_offer(offers, layers)
    used = [index for index, count in enumerate(slots) if count]
    if len(used) > MAX_DEVICES:
        raise UsageError(f"split.layers names {len(used)} devices, and a head takes at most {MAX_DEVICES}")
    expected = ranges.count - 1
    if sum(slots) != expected:
        on_cpu = f", and {ranges.first} of them stay on the CPU" if ranges.first else ""
        raise UsageError(
            f"split.layers adds up to {sum(slots)}, but the model has {ranges.end - 1} layers{on_cpu}",
            hint=f"let it add up to {expected}; the output layer is not counted",
        )
    slots[used[-1] if used else -1] += 1
    faults = list(_faults(ranges, offers, slots))
    if faults:
        raise PlanDoesNotFit("; ".join(faults), hint=_hint(ranges, offers))
    reasons = ("as the recipe says" if count else "the recipe gives it no layers" for count in slots)
    return Assignment(tuple(slots), tuple(reasons))


def _layers_by_offer(offers: Sequence[Offer], layers: Mapping[str, int]) -> list[int]:
    slots = [0] * len(offers)
    for name, count in layers.items():
        places = [index for index, offer in enumerate(offers) if name in (offer.node, offer.label)]
        if not places:
            known = dict.fromkeys(name for offer in offers for name in (offer.node, offer.label))
            raise UsageError(f"split.layers: {name!r} offers no device", hint=f"known are {', '.join(known)}")
        parts = apportion(count, [offers[place].budget_bytes + 1 for place in places])
        for place, part in zip(places, parts, strict=True):
            slots[place] += part
    return slots


def _faults(ranges: SlotRanges, offers: Sequence[Offer], slots: Sequence[int]) -> Iterator[str]:
    bounds = pairwise(accumulate(slots, initial=ranges.first))
    for offer, (first, end) in zip(offers, bounds, strict=True):
        need = ranges.need_bytes(offer, first, end) if first < end else 0
        if need > offer.budget_bytes:
            yield (
                f"{offer.label} may use {gib(offer.budget_bytes)}, but its part needs {gib(need)}, "
                f"{gib(need - offer.budget_bytes)} more"
            )


def _hint(ranges: SlotRanges, offers: Sequence[Offer]) -> str:
    kept = largest_devices(offers)
    by_memory = split_by_memory(ranges, kept)
    if by_memory is None:
        return f"with `strategy: memory`, {what_would_fit(ranges, kept)}"
    parts = ", ".join(
        f"{offer.label} {count}" for offer, count in zip(kept, by_memory.slots, strict=True) if count
    )
    return f"`split: {{strategy: memory}}` fits, with the output layer counted: {parts}"
