"""Which devices may take layers, and how much each may hold: measured memory, less what must stay free."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from clusterctl.cluster.endpoint import rpc_address
from clusterctl.cluster.facts import NodeFacts
from clusterctl.config.inventory import Inventory, Node
from clusterctl.errors import ClusterctlError
from clusterctl.llama.backends import device_backend
from clusterctl.llama.device_choice import usable_devices
from clusterctl.llama.devices import budget_mib
from clusterctl.model import MIB, Device, Offer, Problem, Role

DEFAULT_RESERVE_MIB = 1024


@dataclass(frozen=True, slots=True)
class _Memory:
    """What tells one physical memory from another: nodes that agree in all of it share it."""

    boot_id: str
    device: Device
    visibility: tuple[tuple[str, str], ...]


def offers_of(inventory: Inventory, facts: Mapping[str, NodeFacts]) -> tuple[Offer, ...]:
    """Return all offers in device order: workers as in the inventory, the head's own devices last.

    Nodes on one machine share its memory, so each gets an equal part of it.

    Raises:
        ClusterctlError: if a device's memory is unknown and the inventory sets no limit.
    """
    nodes = [*inventory.workers, *([] if inventory.head.serve_only else [inventory.head])]
    rows = [(node, facts[node.name], device) for node in nodes for device in devices_of(node, facts[node.name])]
    sharers = Counter(_memory(node, own, device) for node, own, device in rows)
    offers = [
        _offer(inventory, node, own, device, sharers[_memory(node, own, device)]) for node, own, device in rows
    ]
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


def _memory(node: Node, facts: NodeFacts, device: Device) -> _Memory:
    visible = tuple(sorted((name, value) for name, value in node.env.items() if "VISIBLE_DEVICES" in name))
    steady = replace(device, free_mib=None)
    return _Memory(facts.observation.system.boot_id, steady, visible)


def _offer(inventory: Inventory, node: Node, facts: NodeFacts, device: Device, sharers: int) -> Offer:
    reserve = node.memory.reserve_mib
    budget = budget_mib(device, DEFAULT_RESERVE_MIB if reserve is None else reserve, node.memory.limit_mib)
    if budget is None:
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
    return Offer(
        node=node.name,
        device=device.name,
        description=device.description,
        backend=device_backend(device.name),
        rpc_endpoint=endpoint,
        budget_bytes=budget * MIB // sharers,
        bandwidth_gb_s=node.speed.bandwidth_of(device.name),
    )


def _within_limit(node: Node, offers: list[Offer]) -> Iterator[Offer]:
    """A node's limit holds for all its devices together; each gives up in proportion."""
    own = [offer for offer in offers if offer.node == node.name]
    limit, total = node.memory.limit_mib, sum(offer.budget_bytes for offer in own)
    allowed = total if limit is None else min(total, limit * MIB)
    for offer in own:
        yield replace(offer, budget_bytes=offer.budget_bytes * allowed // total if total else 0)
