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
from clusterctl.planning.manual import split_by_hand
from clusterctl.planning.memory import MemoryModel
from clusterctl.planning.proportional import split_by_memory
from clusterctl.planning.shortage import does_not_fit, host_does_not_fit
from clusterctl.planning.slot_ranges import SlotRanges
from clusterctl.planning.token_time import TokenTime
from clusterctl.planning.wording import gib

Strategy = Literal["memory", "speed", "manual"]

SURPLUS = f"a head takes at most {MAX_DEVICES} devices, and this is one of the smallest"


def choose_split(
    memory: MemoryModel,
    offers: Sequence[Offer],
    strategy: Strategy,
    *,
    layers: Mapping[str, int] | None = None,
    host_budget_bytes: int | None = None,
) -> Split:
    """The split of a model over devices, given in device order: workers first, the head's own last.

    `strategy` is memory, speed or manual; `layers` is for manual alone. With no devices at all, everything
    stays on the head's CPU. A host budget that is not known limits nothing.

    Raises:
        PlanDoesNotFit: with what is missing and the least changes that would fit.
        UsageError: for numbers or names in the workload or in `layers` that can't be met.
    """
    if not offers:
        return _on_the_cpu(memory, strategy, host_budget_bytes)
    n_layer = memory.header.n_layer
    if memory.workload.cpu_layers > n_layer:
        raise UsageError(
            f"split.cpu_layers is {memory.workload.cpu_layers}, but the model has {n_layer} layers",
            hint="to keep everything on the head's CPU, let no device take part",
        )
    ranges = SlotRanges(memory, host_budget_bytes)
    if strategy == "manual":
        return _split(strategy, ranges, offers, split_by_hand(ranges, offers, layers or {}))
    kept = largest_devices(offers)
    if strategy == "speed":
        chosen = split_by_speed(ranges, kept, TokenTime(memory, memory.shape.cells // 2))
    else:
        chosen = split_by_memory(ranges, kept)
    if chosen is None:
        raise does_not_fit(ranges, kept)
    split = _split(strategy, ranges, kept, chosen)
    surplus = tuple((offer, SURPLUS) for offer in offers if offer not in kept)
    return replace(split, unused=split.unused + surplus)


def _on_the_cpu(memory: MemoryModel, strategy: Strategy, host_budget_bytes: int | None) -> Split:
    n_layer = memory.header.n_layer
    whole = MemoryModel(memory.header, replace(memory.workload, cpu_layers=n_layer + 1))
    host = whole.host_memory(pipelined=False)
    if host_budget_bytes is not None and host.total_bytes > host_budget_bytes:
        raise host_does_not_fit(host, host_budget_bytes)
    return Split(strategy, n_layer, (), (), host, cpu_layers=n_layer + 1)


def _split(
    strategy: Strategy,
    ranges: SlotRanges,
    offers: Sequence[Offer],
    chosen: Assignment,
) -> Split:
    bounds = pairwise(accumulate(chosen.slots, initial=ranges.first))
    rows = list(zip(offers, bounds, chosen.reasons, strict=True))
    shares = tuple(
        _share(ranges, offer, first, end, reason) for offer, (first, end), reason in rows if first < end
    )
    unused = tuple(
        (offer, _too_small(ranges, offer) or reason) for offer, (first, end), reason in rows if first == end
    )
    host = ranges.host(devices=len(shares))
    budget = ranges.host_budget_bytes
    if budget is not None and host.total_bytes > budget:
        raise host_does_not_fit(host, budget)
    return Split(strategy, ranges.end - 1, shares, unused, host, cpu_layers=ranges.first)


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
