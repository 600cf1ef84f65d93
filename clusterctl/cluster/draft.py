"""The draft model of speculative decoding: where on the head it goes, and what it takes there. Pure.

llama-server makes one context for it, as long as the model's own, with a cache of its own types (llama.cpp
common/speculative.cpp, `common_base_params_to_speculative`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from clusterctl.cluster.facts import NodeFacts
from clusterctl.cluster.offers import cut, offers_of
from clusterctl.config.inventory import Inventory
from clusterctl.config.recipe import Draft
from clusterctl.errors import PlanDoesNotFit, UsageError
from clusterctl.llama.model_header import ModelHeader
from clusterctl.model import Memory, Offer, Workload
from clusterctl.planning.margins import margin_bytes
from clusterctl.planning.memory import MemoryModel, whole_model_memory
from clusterctl.planning.wording import gib

# What llama-server drafts at most, unless told (llama.cpp common/common.h): with a model 16, in newer builds 3;
# from the text so far 64 or less.
DEFAULT_TOKENS = 16
DEFAULT_TOKENS_FROM_TEXT = 64


@dataclass(frozen=True, slots=True)
class DraftPart:
    """What the draft model holds on a device of the head, `node`, and in the head's own memory.

    `device` is `None` for a head without devices: then all of it is in the head's memory.
    """

    node: str
    device: str | None
    memory: Memory
    host: Memory


def drafted_tokens(draft: Draft | None) -> int:
    """How many tokens are drafted at once, at most; drafting from the text so far counts as well."""
    if draft is None:
        return 0
    default = DEFAULT_TOKENS if draft.type == "model" else DEFAULT_TOKENS_FROM_TEXT
    return default if draft.max_tokens is None else draft.max_tokens


def place_draft(
    inventory: Inventory,
    draft: Draft,
    header: ModelHeader,
    workload: Workload,
    facts: Mapping[str, NodeFacts],
) -> DraftPart:
    """Put the draft model on the head's device that the recipe names, else on the one with most room.

    `workload` is how the model itself is served. A remote device is never chosen: two contexts on one overwrite
    each other's graph (llama.cpp issue 23242).

    Raises:
        UsageError: for a device that the head does not have.
        PlanDoesNotFit: if the device is too small.
    """
    own = replace(workload, kv_type_k="f16", kv_type_v="f16", draft_tokens=0, cpu_layers=0)
    device = _device(draft, _devices_of_head(inventory, facts))
    if device is None:
        on_cpu = replace(own, cpu_layers=header.n_layer + 1)
        return DraftPart(
            inventory.head.name, None, Memory(), MemoryModel(header, on_cpu).host_memory(pipelined=False)
        )
    memory = whole_model_memory(header, own)
    need = memory.total_bytes + _pools_bytes(device, memory)
    if need > device.budget_bytes:
        raise PlanDoesNotFit(
            f"the draft model needs {gib(need)} on {device.label}, and {gib(device.budget_bytes)} may be used",
            hint="take a smaller draft model, another draft.device, or leave out `draft`",
        )
    return DraftPart(
        inventory.head.name, device.device, memory, MemoryModel(header, own).host_memory(pipelined=False)
    )


def beside_draft(offers: Iterable[Offer], part: DraftPart) -> tuple[Offer, ...]:
    """Take the draft model off what its device offers."""
    return tuple(
        cut(
            offer,
            max(0, offer.budget_bytes - part.memory.total_bytes - _pools_bytes(offer, part.memory)),
            "beside the draft model",
        )
        if offer.is_local and offer.device == part.device
        else offer
        for offer in offers
    )


def _devices_of_head(inventory: Inventory, facts: Mapping[str, NodeFacts]) -> list[Offer]:
    """What the head's devices offer, even where they take no layers."""
    head = inventory.head.model_copy(update={"serve_only": False})
    nodes = tuple(head if node.name == head.name else node for node in inventory.nodes)
    return [offer for offer in offers_of(inventory.model_copy(update={"nodes": nodes}), facts) if offer.is_local]


def _device(draft: Draft, devices: Sequence[Offer]) -> Offer | None:
    if draft.device is None:
        return max(devices, key=lambda offer: offer.budget_bytes, default=None)
    names = [offer.device for offer in devices]
    if draft.device not in names:
        has = f"has {', '.join(names)}" if names else "has no device that takes a model"
        raise UsageError(
            f"draft.device is {draft.device}, but the head {has}",
            hint="name one of the head's own devices, or leave out draft.device",
        )
    return devices[names.index(draft.device)]


def _pools_bytes(device: Offer, memory: Memory) -> int:
    """What the backend takes for a second context; its driver is in memory already, or fits the reserve."""
    return margin_bytes(device.backend, memory.compute_bytes) - margin_bytes(device.backend)
