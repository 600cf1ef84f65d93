"""The choice of the split: which layers go to which device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Literal

from clusterctl.errors import UsageError
from clusterctl.model import Offer, Share, Split
from clusterctl.planning.assignment import MAX_DEVICES, Assignment, largest_devices
from clusterctl.planning.fastest import split_by_speed
from clusterctl.planning.manual import by_memory_instead, split_by_hand
from clusterctl.planning.memory import MemoryModel
from clusterctl.planning.proportional import split_by_memory
from clusterctl.planning.remedies import Fits, Remedies
from clusterctl.planning.shortage import does_not_fit, head_does_not_fit, what_would_fit
from clusterctl.planning.slot_ranges import SlotRanges
from clusterctl.planning.token_time import TokenTime
from clusterctl.planning.wording import gib

Strategy = Literal["memory", "speed", "manual"]

IDLE = "its layers would be of multi-token prediction alone, and llama.cpp loads no weights for those"
SURPLUS = f"a head takes at most {MAX_DEVICES} devices, and this is one of the smallest"


def choose_split(
    memory: MemoryModel,
    offers: Sequence[Offer],
    strategy: Strategy,
    *,
    layers: Mapping[str, int] | None = None,
    host_budget_bytes: int | None = None,
    fits: Fits | None = None,
) -> Split:
    """The split of a model over devices, given in device order: workers first, the head's own last.

    `strategy` is memory, speed or manual; `layers` is for manual alone. With no devices at all, everything
    stays on the head's CPU. A host budget that is not known limits nothing.
    `fits` plans a changed workload, as `Remedies` explains.

    Raises:
        PlanDoesNotFit: with what is missing and the least changes that would fit.
        UsageError: for numbers or names in the workload or in `layers` that can't be met.
    """
    if not offers:
        return _on_the_cpu(memory, strategy, host_budget_bytes, fits)
    n_layer = memory.header.n_layer
    if memory.workload.cpu_layers > n_layer:
        raise UsageError(
            f"split.cpu_layers is {memory.workload.cpu_layers}, but the model has {n_layer} layers",
            hint="to keep everything on the head's CPU, let no device take part",
        )
    ranges = SlotRanges(memory, host_budget_bytes)
    kept = largest_devices(offers)
    remedies = Remedies(ranges, kept, fits)
    if strategy == "manual":
        chosen = split_by_hand(ranges, offers, layers or {}, remedies)
        split = _split(strategy, ranges, offers, chosen)
        if host_budget_bytes is not None and split.host.total_bytes > host_budget_bytes:
            raise head_does_not_fit(split.host, host_budget_bytes, by_memory_instead(remedies))
        return split
    if strategy == "speed":
        found = split_by_speed(ranges, kept, TokenTime(memory, memory.shape.cells // 2))
    else:
        found = split_by_memory(ranges, kept)
    if found is None:
        raise does_not_fit(remedies)
    split = _split(strategy, ranges, kept, found)
    surplus = tuple((offer, SURPLUS) for offer in offers if offer not in kept)
    return replace(split, unused=split.unused + surplus)


def _on_the_cpu(
    memory: MemoryModel, strategy: Strategy, host_budget_bytes: int | None, fits: Fits | None
) -> Split:
    n_layer = memory.header.n_layer
    whole = MemoryModel(memory.header, replace(memory.workload, cpu_layers=n_layer + 1))
    host = whole.host_memory(pipelined=False)
    if host_budget_bytes is not None and host.total_bytes > host_budget_bytes:
        remedies = Remedies(SlotRanges(whole, host_budget_bytes), (), fits)
        raise head_does_not_fit(host, host_budget_bytes, what_would_fit(remedies))
    return Split(strategy, n_layer, (), (), host, cpu_layers=n_layer + 1)


def _split(
    strategy: Strategy,
    ranges: SlotRanges,
    offers: Sequence[Offer],
    chosen: Assignment,
) -> Split:
    chosen = _without_idle(ranges, chosen)
    bounds = pairwise(accumulate(chosen.slots, initial=ranges.first))
    rows = list(zip(offers, bounds, chosen.reasons, strict=True))
    shares = tuple(
        _share(ranges, offer, first, end, reason) for offer, (first, end), reason in rows if first < end
    )
    unused = tuple(
        (offer, _too_small(ranges, offer) or reason) for offer, (first, end), reason in rows if first == end
    )
    host = ranges.host(devices=len(shares))
    return Split(strategy, ranges.end - 1, shares, unused, host, cpu_layers=ranges.first)


def _without_idle(ranges: SlotRanges, chosen: Assignment) -> Assignment:
    """Leave out devices that would hold no weights; their slots, which cost nothing, go to the next one in use.

    A worker without weights could not be told from one that the head has lost.
    """
    slots, reasons, carried, first = list(chosen.slots), list(chosen.reasons), 0, ranges.first
    for index, count in enumerate(chosen.slots):
        if count and not ranges.memory(first, first + count).model_bytes:
            slots[index], reasons[index] = 0, IDLE
            carried += count
        elif count:
            slots[index] += carried
            carried = 0
        first += count
    return Assignment(tuple(slots), tuple(reasons))


def _share(ranges: SlotRanges, offer: Offer, first: int, end: int, reason: str) -> Share:
    n_layer = ranges.end - 1
    has_layers = first < n_layer
    return Share(
        offer=offer,
        first_layer=first if has_layers else None,
        last_layer=min(end, n_layer) - 1 if has_layers else None,
        has_output=end > n_layer,
        slots=end - first,
        memory=ranges.memory(first, end),
        reason=reason,
    )


def _too_small(ranges: SlotRanges, offer: Offer) -> str | None:
    if ranges.can_take_part(offer):
        return None
    need = ranges.least_need_bytes(offer)
    return f"not even one layer fits: {gib(need)} with its buffers, and {gib(offer.budget_bytes)} may be used"
