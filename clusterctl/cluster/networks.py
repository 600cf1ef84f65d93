"""Which private networks nodes share, the fastest first, and why others are out of the question. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

from clusterctl.cluster.interfaces import Interface, Kind
from clusterctl.config.addresses import is_private
from clusterctl.model import Address

TAILSCALE = IPv4Network("100.64.0.0/10")
LINK_LOCAL = IPv4Network("169.254.0.0/16")
MAX_NAMED = 3

_WIRED = frozenset({Kind.ETHERNET, Kind.INFINIBAND, Kind.THUNDERBOLT})
_CLASSES = (_WIRED, frozenset({Kind.VIRTUAL, Kind.UNKNOWN}), frozenset({Kind.TUNNEL}), frozenset({Kind.WIFI}))
# Linux tells no rate for Thunderbolt and USB4 (drivers/net/thunderbolt); their slowest link has 10 Gbit/s.
_THUNDERBOLT_MBIT_S = 10_000
_UNFIT = {
    Kind.LOOPBACK: "it never leaves the node",
    Kind.BRIDGE: "it leads to containers or virtual machines of one host",
}


@dataclass(frozen=True, slots=True)
class Attachment:
    """An address of a node, the interface that carries it, and whether SSH comes in by it."""

    address: Address
    interface: Interface
    carries_ssh: bool = False

    @property
    def network(self) -> IPv4Network:
        """The address's network. Tailscale hands out single addresses of the one network that all are in."""
        if self.address.prefix_length == 32 and self.ip in TAILSCALE:
            return TAILSCALE
        return IPv4Network((self.ip, self.address.prefix_length), strict=False)

    @property
    def ip(self) -> IPv4Address:
        """The address by itself."""
        return IPv4Address(self.address.address)

    @property
    def unfit(self) -> str | None:
        """Why RPC can't use this address, `None` where it can."""
        if self.interface.kind in _UNFIT:
            return _UNFIT[self.interface.kind]
        if not is_private(self.ip):
            return "it is public, and RPC has no password"
        return "its link is down" if self.interface.is_up is False else None

    @property
    def slowness(self) -> tuple[int, int]:
        """A sort key: wired, virtual, tunnels, Wi-Fi; then by rate, where an unknown one counts as the lowest."""
        mbit_s = self.interface.mbit_s
        if mbit_s is None and self.interface.kind is Kind.THUNDERBOLT:
            mbit_s = _THUNDERBOLT_MBIT_S
        rank = next(at for at, kinds in enumerate(_CLASSES) if self.interface.kind in kinds)
        return rank, -(mbit_s or 0)


@dataclass(frozen=True, slots=True)
class SharedNetwork:
    """A network and, for every node, its fastest attachment to it."""

    network: IPv4Network
    attachments: Mapping[str, Attachment]

    @property
    def slowness(self) -> tuple[bool, tuple[int, int]]:
        """A sort key: the slowest node decides. Link-local networks come last, for their addresses change."""
        return self.network.subnet_of(LINK_LOCAL), self._slowest.slowness

    @property
    def carries_ssh(self) -> bool:
        """Whether SSH comes to any node by it."""
        return any(attachment.carries_ssh for attachment in self.attachments.values())

    @property
    def link(self) -> str:
        """The slowest node's link in words: `10 Gbit/s Ethernet`."""
        interface = self._slowest.interface
        if interface.mbit_s is not None:
            return f"{_rate(interface.mbit_s)} {interface.kind.value}"
        return f"{interface.kind.value}{' of unknown rate' if interface.kind in _WIRED else ''}"

    @property
    def _slowest(self) -> Attachment:
        return max(self.attachments.values(), key=lambda attachment: attachment.slowness)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A network that is not shared, and why."""

    network: IPv4Network
    reason: str


Attachments = Mapping[str, Sequence[Attachment]]
"""What every node has, by node."""


def attachments_of(
    addresses: Sequence[Address], interfaces: Mapping[str, Interface], ssh_address: str | None
) -> tuple[Attachment, ...]:
    """Return a node's addresses, each with its interface; one of which nothing is told is of unknown kind."""
    return tuple(
        Attachment(
            address,
            interfaces.get(address.interface, Interface(address.interface)),
            carries_ssh=address.address == ssh_address,
        )
        for address in addresses
    )


def shared_networks(nodes: Attachments) -> tuple[SharedNetwork, ...]:
    """Return the networks in which every node has an address of its own, the fastest first.

    Of equally fast ones, those come first that SSH does not use: they are more likely there for the purpose.
    """
    networks = {each.network for own in nodes.values() for each in own}
    shared = [shared for network in networks if isinstance(shared := _share(nodes, network), SharedNetwork)]
    return tuple(sorted(shared, key=lambda each: (each.slowness, each.carries_ssh, each.network)))


def networks_left_out(nodes: Attachments) -> tuple[LeftOut, ...]:
    """Return every other network of the nodes but loopback, with the reason."""
    networks = {each.network for own in nodes.values() for each in own if each.interface.kind is not Kind.LOOPBACK}
    return tuple(left for network in sorted(networks) if isinstance(left := _share(nodes, network), LeftOut))


def named_network(nodes: Attachments, network: IPv4Network) -> SharedNetwork | LeftOut:
    """Return a network that the user names; it may be wider than those that the nodes know."""
    return _shared_or_not(
        network, {name: [each for each in own if each.ip in network] for name, own in nodes.items()}
    )


def _share(nodes: Attachments, network: IPv4Network) -> SharedNetwork | LeftOut:
    return _shared_or_not(
        network, {name: [each for each in own if each.network == network] for name, own in nodes.items()}
    )


def _shared_or_not(network: IPv4Network, inside: Attachments) -> SharedNetwork | LeftOut:
    fit = {name: [each for each in own if each.unfit is None] for name, own in inside.items()}
    if missing := [name for name, own in fit.items() if not own]:
        unfit = next((each.unfit for name in missing for each in inside[name]), None)
        where = ", ".join(missing) if len(missing) <= MAX_NAMED else f"{len(missing)} of {len(fit)} nodes"
        return LeftOut(network, unfit or f"no address in it on {where}")
    fastest = {name: min(own, key=lambda each: each.slowness) for name, own in fit.items()}
    holders: dict[IPv4Address, list[str]] = {}
    for name, attachment in fastest.items():
        holders.setdefault(attachment.ip, []).append(name)
    if same := next((names for names in holders.values() if len(names) > 1), None):
        return LeftOut(
            network, f"{' and '.join(same)} have the same address in it, so it is more than one network"
        )
    return SharedNetwork(network, fastest)


def _rate(mbit_s: int) -> str:
    return f"{mbit_s} Mbit/s" if mbit_s < 1000 else f"{mbit_s / 1000:g} Gbit/s"
