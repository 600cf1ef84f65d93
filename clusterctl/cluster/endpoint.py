"""The private address a worker listens on, found among the addresses the node really has."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network

from clusterctl.cluster.facts import NodeFacts
from clusterctl.config.addresses import is_private
from clusterctl.config.inventory import Inventory, Node
from clusterctl.model import Problem, Severity


def rpc_address(inventory: Inventory, node: Node, facts: NodeFacts) -> str | Problem:
    """Return the address, or the problem if the node has none that fits.

    `rpc.address` wins over `rpc.interface`, which wins over the inventory's `network`. llama.cpp binds a numeric
    IPv4 address only (ggml-rpc.cpp: `inet_addr`).
    """
    if node.rpc.address:
        wanted = f"rpc.address {node.rpc.address}"
        found = [own.address for own in facts.addresses if own.address == node.rpc.address]
    elif node.rpc.interface:
        wanted = f"an IPv4 address on rpc.interface {node.rpc.interface}"
        on_it = [own.address for own in facts.addresses if own.interface == node.rpc.interface]
        found = [address for address in on_it if _is_safe(IPv4Address(address))]
        if on_it and not found:
            return Problem(
                "address-public",
                Severity.ERROR,
                f"rpc.interface {node.rpc.interface} is on a public network: it has {', '.join(on_it)}",
                "RPC has neither password nor encryption; name the interface of a private network",
            )
    else:
        network = IPv4Network(str(inventory.network))
        wanted = f"an address in network {network}"
        found = [own.address for own in facts.addresses if IPv4Address(own.address) in network]
    if len(found) == 1:
        return found[0]
    has = ", ".join(f"{own.address} on {own.interface}" for own in facts.addresses) or "none"
    if found:
        return Problem(
            "address-ambiguous",
            Severity.ERROR,
            f"more than one address fits {wanted}: {', '.join(found)}",
            "name one with rpc.address",
        )
    return Problem(
        "address-missing",
        Severity.ERROR,
        f"the node does not have {wanted}; it has {has}",
        "bring the interface up, or correct rpc.address, rpc.interface or network in the inventory",
    )


def _is_safe(address: IPv4Address) -> bool:
    return address.is_loopback or is_private(address)
