"""The errors for a model that does not fit: what is missing, where, and what would help."""

from __future__ import annotations

from collections.abc import Sequence

from clusterctl.errors import PlanDoesNotFit
from clusterctl.model import Memory, Offer
from clusterctl.planning.remedies import Remedies
from clusterctl.planning.slot_ranges import SlotRanges
from clusterctl.planning.wording import gib


class HeadDoesNotFit(PlanDoesNotFit):
    """The head's own memory is too small, whatever the devices hold."""


def head_does_not_fit(host: Memory, budget_bytes: int, hint: str) -> HeadDoesNotFit:
    """The error for a head whose own memory is too small."""
    return HeadDoesNotFit(
        f"the head's own memory needs {gib(host.total_bytes)} and {gib(budget_bytes)} are available, "
        f"{gib(host.total_bytes - budget_bytes)} less",
        hint=hint,
    )


def does_not_fit(remedies: Remedies) -> PlanDoesNotFit:
    """The error for a model that fits in no split, with every change that would make it fit."""
    ranges, hint = remedies.ranges, what_would_fit(remedies)
    host = min((ranges.host(devices=count) for count in (1, 2)), key=lambda memory: memory.total_bytes)
    budget = ranges.host_budget_bytes
    if budget is not None and host.total_bytes > budget:
        return head_does_not_fit(host, budget, hint)
    return PlanDoesNotFit(_shortage(ranges, remedies.offers), hint=hint)


def what_would_fit(remedies: Remedies) -> str:
    """The least changes that would make the model fit, in words."""
    changes = "; ".join(remedies)
    if not changes:
        return "no single change would make it fit: take a smaller quantisation, or add devices"
    return f"any one of these would make it fit: {changes}"


def _shortage(ranges: SlotRanges, offers: Sequence[Offer]) -> str:
    whole = ranges.memory(ranges.first, ranges.end)
    buffers = sum(ranges.buffer_bytes(offer) for offer in offers)
    need = whole.model_bytes + whole.kv_bytes + buffers
    have = sum(offer.budget_bytes for offer in offers)
    parts = f"weights {gib(whole.model_bytes)}, KV cache {gib(whole.kv_bytes)}, buffers {gib(buffers)}"
    devices = ", ".join(f"{offer.label} {gib(offer.budget_bytes)}" for offer in offers)
    needs = f"the model needs {gib(need)} ({parts})"
    if need > have:
        return f"{needs}, {gib(need - have)} more than its devices' {gib(have)}: {devices}"
    return f"{needs} of its devices' {gib(have)}, but whole layers do not fit into this: {devices}"
