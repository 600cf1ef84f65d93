"""The network of the RPC traffic, and where one network is not enough, each worker's own address. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Network

from clusterctl.cluster.networks import (
    Attachments,
    LeftOut,
    SharedNetwork,
    named_network,
    networks_left_out,
    shared_networks,
)
from clusterctl.errors import UsageError


@dataclass(frozen=True, slots=True)
class NetworkChoice:
    """`addresses` are those of the workers for which `network` alone does not say where to listen."""

    network: IPv4Network | None = None
    addresses: Mapping[str, str] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()


def choose_network(nodes: Attachments, head: str, wanted: IPv4Network | None) -> NetworkChoice:
    """Choose the network the user wants, else the fastest that all nodes share, else one per worker and head.

    Raises:
        UsageError: if a node is not on the wanted network, or no private network leads from the head to a worker.
    """
    if len(nodes) == 1:
        return NetworkChoice()
    others: Sequence[SharedNetwork] = ()
    if wanted is not None:
        chosen, why = _demand(nodes, wanted), "you chose it"
    elif shared := shared_networks(nodes):
        chosen, *others = shared
        why = "the fastest that all nodes share" if others else "the only one that all nodes share"
    else:
        return _one_per_worker(nodes, head)
    reasons = (
        f"network {chosen.network} ({chosen.link}): {why}",
        *(
            f"{other.network} ({other.link}) is shared too{_compared(other, chosen)}; --network chooses it"
            for other in others
        ),
        *_faster_ways(nodes, head, chosen),
        *_left_out(nodes),
    )
    return NetworkChoice(chosen.network, _fastest_of_several(nodes, head, chosen), reasons)


def _demand(nodes: Attachments, wanted: IPv4Network) -> SharedNetwork:
    named = named_network(nodes, wanted)
    if isinstance(named, LeftOut):
        raise UsageError(
            f"{wanted} can't carry the RPC traffic: {named.reason}",
            hint=f"{_known(nodes)}; or leave out --network",
        )
    return named


def _compared(other: SharedNetwork, first: SharedNetwork) -> str:
    if other.slowness != first.slowness:
        return ""
    return ", as fast, but SSH comes by it" if other.carries_ssh > first.carries_ssh else ", as fast"


def _fastest_of_several(nodes: Attachments, head: str, chosen: SharedNetwork) -> Mapping[str, str]:
    """Where those workers listen that have more than one address in the network."""
    return {
        name: chosen.attachments[name].address.address
        for name, own in nodes.items()
        if name != head and sum(each.ip in chosen.network for each in own) > 1
    }


def _faster_ways(nodes: Attachments, head: str, chosen: SharedNetwork) -> Iterator[str]:
    for name, own in nodes.items():
        ways = shared_networks({head: nodes[head], name: own}) if name != head else ()
        if ways and ways[0].slowness < chosen.slowness:
            address = ways[0].attachments[name].address.address
            yield (
                f"{name} and {head} also share {ways[0].network} ({ways[0].link}); "
                f"`rpc: {{address: {address}}}` of {name} uses it"
            )


def _left_out(nodes: Attachments) -> Iterator[str]:
    by_reason: dict[str, list[str]] = {}
    for left in networks_left_out(nodes):
        by_reason.setdefault(left.reason, []).append(str(left.network))
    for reason, networks in by_reason.items():
        yield f"left out: {', '.join(networks)}: {reason}"


def _one_per_worker(nodes: Attachments, head: str) -> NetworkChoice:
    ways = {name: shared_networks({head: nodes[head], name: own}) for name, own in nodes.items() if name != head}
    if apart := [name for name, found in ways.items() if not found]:
        raise UsageError(
            f"no private network leads from {head} to {', '.join(apart)}",
            hint=f"{_known(nodes)}; connect them, or choose another head with --head",
        )
    reasons = [
        f"{name} listens on {found[0].network} ({found[0].link}), which it shares with {head}"
        for name, found in ways.items()
    ]
    return NetworkChoice(
        addresses={name: found[0].attachments[name].address.address for name, found in ways.items()},
        reasons=("no network is common to all nodes", *reasons),
    )


def _known(nodes: Attachments) -> str:
    """Say which networks each node is on."""
    seen = {name: sorted({each.network for each in own if each.unfit is None}) for name, own in nodes.items()}
    return "; ".join(f"{name} is on {', '.join(map(str, networks)) or 'none'}" for name, networks in seen.items())
