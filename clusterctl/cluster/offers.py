"""Which devices may take layers, and how much each may hold: measured memory, less what must stay free."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from clusterctl.cluster.endpoint import rpc_address
from clusterctl.cluster.facts import NodeFacts
from clusterctl.config.inventory import Inventory, Node
from clusterctl.errors import ClusterctlError
from clusterctl.llama.backends import device_backend
from clusterctl.llama.device_choice import usable_devices
from clusterctl.llama.devices import budget_steps
from clusterctl.model import MIB, UNKNOWN_LINK, BudgetStep, Device, Link, Offer, Problem, Role
from clusterctl.planning.bandwidth import is_unified

DEFAULT_RESERVE_MIB = 1024
NO_LINKS: Mapping[str, Link] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class _Memory:
    """What tells one physical memory from another: nodes that agree in all of it share it."""

    boot_id: str
    device: Device
    visibility: tuple[tuple[str, str], ...]


def offers_of(
    inventory: Inventory, facts: Mapping[str, NodeFacts], links: Mapping[str, Link] = NO_LINKS
) -> tuple[Offer, ...]:
    """Return all offers in device order: workers as in the inventory, the head's own devices last.

    Nodes on one machine share its memory, so each gets an equal part of it. `links` are the ways from the head
    to the workers, as far as they are known.

    Raises:
        ClusterctlError: if a device's memory is unknown and the inventory sets no limit.
    """
    nodes = [*inventory.workers, *([] if inventory.head.serve_only else [inventory.head])]
    rows = [(node, facts[node.name], device) for node in nodes for device in devices_of(node, facts[node.name])]
    sharers = Counter(_memory(node, own, device) for node, own, device in rows)
    available = _available_mib(facts)
    offers = []
    for node, own, device in rows:
        link = links.get(node.name, UNKNOWN_LINK)
        offer = _offer(inventory, node, own, device, link, available[own.observation.system.boot_id])
        offers.append(_allowed(node, own, _shared(offer, sharers[_memory(node, own, device)])))
    return tuple(limited for node in nodes for limited in _within_limit(node, offers))


def devices_of(node: Node, facts: NodeFacts) -> tuple[Device, ...]:
    """Return the devices of a node that take part: those the inventory names, else all usable ones.

    A worker offers its CPU only if it has nothing better (ggml-rpc-server does the same by default).
    """
    kept, _ = usable_devices(facts.devices or (), node.backend)
    if node.role is Role.WORKER and node.rpc.devices:
        listed = {device.name: device for device in facts.devices or ()}
        return tuple(listed[name] for name in node.rpc.devices if name in listed)
    accelerators = tuple(device for device in kept if device_backend(device.name) != "cpu")
    if node.role is Role.HEAD or accelerators:
        return accelerators
    return kept


def reserve_mib(node: Node) -> int:
    """What is to stay free of each memory of a node."""
    reserve = node.memory.reserve_mib
    return DEFAULT_RESERVE_MIB if reserve is None else reserve


def beside_host(
    inventory: Inventory,
    facts: Mapping[str, NodeFacts],
    offers: Collection[Offer],
    host_bytes: int,
    host_budget_bytes: int | None,
) -> tuple[Offer, ...]:
    """Take what the head's own process needs, `host_bytes`, off the devices that lie in the same memory.

    Those are unified devices of the head, and CPU devices of workers on its machine. All of them together
    may hold what the process leaves of `host_budget_bytes`; where that is not known, of what they offer.
    """
    sharing = [offer for offer in offers if _is_in_memory_of_head(inventory, facts, offer)]
    offered = sum(offer.budget_bytes for offer in sharing)
    available = offered if host_budget_bytes is None else host_budget_bytes
    allowed = max(0, min(offered, available - host_bytes))
    cause = "beside what the head's own process needs of this memory"
    return tuple(
        cut(offer, offer.budget_bytes * allowed // offered, cause) if offer in sharing and offered else offer
        for offer in offers
    )


def cut(offer: Offer, budget_bytes: int, cause: str) -> Offer:
    """The offer with a smaller budget and the reason for it; an unchanged one as it is."""
    if budget_bytes == offer.budget_bytes:
        return offer
    steps = (*offer.budget_steps, BudgetStep(cause, budget_bytes))
    return replace(offer, budget_bytes=budget_bytes, budget_steps=steps)


def _is_in_memory_of_head(inventory: Inventory, facts: Mapping[str, NodeFacts], offer: Offer) -> bool:
    machines = {facts[name].observation.system.boot_id for name in (offer.node, inventory.head.name)}
    return len(machines) == 1 and _is_in_host_memory(offer)


def _is_in_host_memory(offer: Offer) -> bool:
    return offer.backend == "cpu" or is_unified(offer)


def _memory(node: Node, facts: NodeFacts, device: Device) -> _Memory:
    visible = tuple(sorted((name, value) for name, value in node.env.items() if "VISIBLE_DEVICES" in name))
    steady = replace(device, free_mib=None)
    return _Memory(facts.observation.system.boot_id, steady, visible)


def _offer(
    inventory: Inventory, node: Node, facts: NodeFacts, device: Device, link: Link, available_mib: int | None
) -> Offer:
    steps = budget_steps(device, reserve_mib(node), node.memory.limit_mib)
    if not steps:
        raise ClusterctlError(
            f"{device.name} does not tell its memory",
            node=node.name,
            hint="say how much may be used with memory.limit_mib in the inventory",
        )
    endpoint = None
    if node.role is Role.WORKER:
        address = rpc_address(inventory, node, facts)
        if isinstance(address, Problem):
            raise ClusterctlError(address.message, node=node.name, hint=address.hint)
        endpoint = f"{address}:{node.rpc.port}"
    offer = Offer(
        node=node.name,
        device=device.name,
        description=device.description,
        backend=device_backend(device.name),
        rpc_endpoint=endpoint,
        budget_bytes=steps[-1].left_bytes,
        bandwidth_gb_s=node.speed.bandwidth_of(device.name),
        link=link,
        budget_steps=steps,
        fp16_tflop_s=node.speed.fp16_tflop_s_of(device.name),
    )
    if available_mib is None or not _is_in_host_memory(offer):
        return offer
    # A CPU device reports all memory as free, and Metal does not see other programs; the system knows.
    available = max(0, available_mib - reserve_mib(node)) * MIB
    return cut(offer, min(offer.budget_bytes, available), "what the machine's memory has available, less the same")


def _available_mib(facts: Mapping[str, NodeFacts]) -> dict[str, int | None]:
    """What each machine has available, by boot id. Its nodes are asked one by one; the least answer counts."""
    least: dict[str, int | None] = {}
    for own in facts.values():
        boot_id, known = own.observation.system.boot_id, own.memory.available_mib
        least[boot_id] = min((mib for mib in (least.get(boot_id), known) if mib is not None), default=None)
    return least


def _shared(offer: Offer, sharers: int) -> Offer:
    return cut(offer, offer.budget_bytes // sharers, f"an equal part for each of {sharers} nodes on this memory")


def _allowed(node: Node, facts: NodeFacts, offer: Offer) -> Offer:
    """A container's limit holds for its own programs alone; beyond it the kernel ends them."""
    if facts.memory.allowed_mib is None or not _is_in_host_memory(offer):
        return offer
    allowed = max(0, facts.memory.allowed_mib - reserve_mib(node)) * MIB
    return cut(offer, min(offer.budget_bytes, allowed), "what the limits on its programs leave, less the same")


def _within_limit(node: Node, offers: list[Offer]) -> Iterator[Offer]:
    """A node's limit holds for all its devices together; each gives up in proportion."""
    own = [offer for offer in offers if offer.node == node.name]
    limit, total = node.memory.limit_mib, sum(offer.budget_bytes for offer in own)
    allowed = total if limit is None else min(total, limit * MIB)
    for offer in own:
        budget = offer.budget_bytes * allowed // total if total else 0
        yield cut(offer, budget, f"its part of the node's limit of {limit} MiB")
