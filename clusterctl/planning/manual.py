"""`strategy: manual`: the layers that a recipe gives to nodes or devices, checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, pairwise

from clusterctl.errors import PlanDoesNotFit, UsageError
from clusterctl.model import Offer
from clusterctl.planning.assignment import MAX_DEVICES, Assignment
from clusterctl.planning.proportional import apportion, split_by_memory
from clusterctl.planning.remedies import Remedies
from clusterctl.planning.shortage import what_would_fit
from clusterctl.planning.slot_ranges import SlotRanges
from clusterctl.planning.wording import gib


def split_by_hand(
    ranges: SlotRanges, offers: Sequence[Offer], layers: Mapping[str, int], remedies: Remedies
) -> Assignment:
    """Slots as `layers` says, which counts layers by `node` or `node/device`.

    A node's number is divided over its devices in proportion to their memory. The output layer comes on top of the
    last device that got layers, where llama.cpp puts it too (src/llama-model.cpp, `load_tensors`).

    Raises:
        UsageError: for a name that offers no device, more devices than a head can take, a sum that is not the
            model's number of layers, or if no layers are left to give.
        PlanDoesNotFit: if a device can't hold its part; names every such device.
    """
    expected = ranges.count - 1
    if not expected:
        raise UsageError(
            f"split.layers has nothing to give: split.cpu_layers keeps all {ranges.first} layers on the CPU",
            hint="lower split.cpu_layers, or leave the output layer, all that is left, to `strategy: memory`",
        )
    slots = _layers_by_offer(offers, layers)
    used = [index for index, count in enumerate(slots) if count]
    if len(used) > MAX_DEVICES:
        raise UsageError(f"split.layers names {len(used)} devices, and a head takes at most {MAX_DEVICES}")
    if sum(slots) != expected:
        on_cpu = f", and {ranges.first} of them stay on the CPU" if ranges.first else ""
        raise UsageError(
            f"split.layers adds up to {sum(slots)}, but the model has {ranges.end - 1} layers{on_cpu}",
            hint=f"let it add up to {expected}; the output layer is not counted",
        )
    slots[used[-1]] += 1
    faults = list(_faults(ranges, offers, slots))
    if faults:
        raise PlanDoesNotFit("; ".join(faults), hint=by_memory_instead(remedies))
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


def by_memory_instead(remedies: Remedies) -> str:
    """The next step for a split by hand that does not fit: the one by memory, or what would make that fit."""
    by_memory = split_by_memory(remedies.ranges, remedies.offers)
    if by_memory is None:
        return f"with `strategy: memory`, {what_would_fit(remedies)}"
    parts = ", ".join(
        f"{offer.label} {count}" for offer, count in zip(remedies.offers, by_memory.slots, strict=True) if count
    )
    return f"`split: {{strategy: memory}}` fits, with the output layer counted: {parts}"
