"""From machines as found to an inventory: roles, addresses, backends and programs, each with a reason. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network

from clusterctl.cluster.facts import NodeFacts
from clusterctl.cluster.head_choice import HeadChoice, accelerators
from clusterctl.cluster.network_choice import NetworkChoice, choose_network
from clusterctl.cluster.networks import attachments_of
from clusterctl.cluster.stated import stated_build
from clusterctl.cluster.survey import Site
from clusterctl.config.writing import InventoryDraft, NodeDraft
from clusterctl.llama.backends import device_backend
from clusterctl.llama.device_choice import usable_devices
from clusterctl.model import Device, Role


@dataclass(frozen=True, slots=True)
class Proposal:
    """An inventory that is not written yet, and why it is as it is, a sentence each."""

    draft: InventoryDraft
    reasons: tuple[str, ...]


def propose(cluster: str, sites: Sequence[Site], head: HeadChoice, wanted: IPv4Network | None) -> Proposal:
    """Draft the inventory of these sites; the workers keep the order in which they were named.

    Raises:
        UsageError: if the nodes can't be connected as wanted, or at all.
    """
    attachments = {
        site.name: attachments_of(site.as_head.addresses, site.as_head.interfaces, site.ssh_address)
        for site in sites
    }
    network = choose_network(attachments, head.name, wanted)
    roles = {site.name: Role.HEAD if site.name == head.name else Role.WORKER for site in sites}
    reason = f"{head.name} is the head: {head.reason}"
    draft = InventoryDraft(
        cluster=cluster,
        nodes=tuple(_node(site, roles, network, reason) for site in sites),
        network=str(network.network) if network.network else None,
        network_comments=network.reasons,
        pin=_pin(next(site for site in sites if site.name == head.name)),
    )
    return Proposal(draft, (reason, *network.reasons))


def _node(site: Site, roles: Mapping[str, Role], network: NetworkChoice, head_reason: str) -> NodeDraft:
    role = roles[site.name]
    facts = site.facts(role)
    cards = accelerators(facts.devices)
    is_head = role is Role.HEAD
    is_idle_head = is_head and facts.devices is not None and not cards and len(roles) > 1
    there = site.destination
    return NodeDraft(
        name=site.name,
        role=role,
        host=there.host if there else None,
        user=there.user if there else None,
        port=there.port if there else None,
        backend=None if is_idle_head else _backend(facts, cards),
        serve_only=is_idle_head,
        bin_dir=_bin_dir(facts, role),
        rpc_address=network.addresses.get(site.name),
        comments=(*([head_reason] if is_head else []), _machine(facts, is_idle_head)),
    )


def _backend(facts: NodeFacts, cards: Sequence[Device]) -> str | None:
    """The one backend of all cards, `cpu` where there is no card, `None` where that is not known or several."""
    backends = {device_backend(card.name) for card in cards} or {"cpu"}
    return backends.pop() if facts.devices is not None and len(backends) == 1 else None


def _machine(facts: NodeFacts, is_idle_head: bool) -> str:
    system = facts.observation.system
    devices, _ = usable_devices(facts.devices or (), None)
    listed = ", ".join(f"{device.name}: {device.description}{_size(device)}" for device in devices)
    idle = "no accelerator, so it only serves" if is_idle_head else "no device listed"
    return f"{system.os} on {system.arch}; {listed if listed and not is_idle_head else idle}"


def _size(device: Device) -> str:
    return f", {device.total_mib / 1024:.0f} GiB" if device.total_mib else ""


def _bin_dir(facts: NodeFacts, role: Role) -> str | None:
    """The directory of the program that the role needs; `~/…` below the home, which is alike on more nodes."""
    worker = facts.worker_program
    path = (worker.path if worker else "") if role is Role.WORKER else (facts.head_program or ("",))[0]
    if not path.startswith("/"):
        return None
    directory, home = path.rpartition("/")[0] or "/", facts.observation.system.home
    return f"~{directory.removeprefix(home)}" if home != "/" and directory.startswith(f"{home}/") else directory


def _pin(head: Site) -> str | None:
    build = stated_build(head.as_head)
    return (build.commit or build.tag) if build else None
