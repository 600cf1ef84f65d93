"""Types of hosts, addresses and networks. RPC has no password: its addresses must be private ones."""

from __future__ import annotations

from ipaddress import AddressValueError, IPv4Address, IPv4Network, IPv6Address, NetmaskValueError
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema

from clusterctl.config.fields import WORD, Text

PRIVATE_NETWORKS = tuple(
    map(IPv4Network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16"))
)
"""RFC 1918, the shared range that Tailscale uses, the link-local one of USB4 and Thunderbolt bridges."""

NETWORK_FORM = "must be a private IPv4 network such as 10.0.0.0/24"


def is_private(address: IPv4Address) -> bool:
    """Whether RPC may be reached at this address from another machine."""
    return any(address in network for network in PRIVATE_NETWORKS)


def _host(host: str) -> str:
    if host.startswith("-"):
        raise ValueError("must not begin with `-`: ssh would take it for an option")
    if "@" in host:
        raise ValueError("must be the host alone; the user has a key of its own, `ssh.user`")
    if host.count(":") == 1 or "/" in host:
        raise ValueError("must be a host name or an address alone, without a port or a path")
    return host


def _rpc_address(given: str) -> str:
    """Return an address that RPC may listen on; ggml-rpc-server binds through `inet_addr`, IPv4 only."""
    try:
        address = IPv4Address(given)
    except AddressValueError:
        raise ValueError(_why_not_ipv4(given)) from None
    if address.is_unspecified:
        raise ValueError("would listen on every network, and RPC has no password; name one private address")
    if address.is_multicast:
        raise ValueError("must not be a multicast address")
    if not (address.is_loopback or is_private(address)):
        raise ValueError("must be a private address: RPC has neither password nor encryption")
    return given


def _why_not_ipv4(given: str) -> str:
    try:
        IPv6Address(given)
    except AddressValueError:
        return "must be an IPv4 address such as 10.0.0.5; llama.cpp's RPC takes no names"
    return "must be an IPv4 address: llama.cpp's RPC can't use IPv6"


def _private_network(given: object) -> IPv4Network:
    network = given if isinstance(given, IPv4Network) else _parse_network(given)
    if not any(network.subnet_of(private) for private in PRIVATE_NETWORKS):
        raise ValueError("must be a private network: RPC has neither password nor encryption")
    return network


def _parse_network(given: object) -> IPv4Network:
    if not isinstance(given, str) or "/" not in given:
        raise ValueError(NETWORK_FORM)
    try:
        network = IPv4Network(given, strict=False)
    except (AddressValueError, NetmaskValueError):
        raise ValueError(NETWORK_FORM) from None
    if str(network.network_address) != given.partition("/")[0]:
        raise ValueError(f"must be the network, not a host in it: {network}")
    return network


Host = Annotated[str, Text(rf"{WORD}+", "a host name or an address, without spaces"), AfterValidator(_host)]
RpcAddress = Annotated[
    str,
    Text(rf"{WORD}+", "an IPv4 address"),
    AfterValidator(_rpc_address),
    WithJsonSchema({"type": "string", "format": "ipv4"}),
]
PrivateNetwork = Annotated[
    IPv4Network,
    BeforeValidator(_private_network),
    WithJsonSchema({"type": "string", "pattern": r"^[0-9]{1,3}(\.[0-9]{1,3}){3}/[0-9]{1,2}$"}),
]
