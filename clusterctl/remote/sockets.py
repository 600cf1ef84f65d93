"""TCP sockets of a node, read from the kernel's table (Linux) or from lsof (macOS)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address

_LISTEN, _ESTABLISHED = "0A", "01"
_KERNEL_HEADING = "local_address"
_END = r"([0-9A-F]{8}|[0-9A-F]{32}):([0-9A-F]{4})"
_KERNEL_ROW = re.compile(rf"^\s*[0-9]+: {_END} {_END} ([0-9A-F]{{2}}) ")
_LSOF_NAME = re.compile(r"^n(.+?):([0-9]{1,5})(?:->(.+):([0-9]{1,5}))?$")


@dataclass(frozen=True, slots=True)
class Socket:
    """A listening socket, or an established connection when `peer` is set (`address:port`)."""

    address: str
    port: int
    peer: str | None = None

    @property
    def listens(self) -> bool:
        """Whether it waits for connections."""
        return self.peer is None

    @property
    def peer_address(self) -> str | None:
        """The other end's address, without the port."""
        return None if self.peer is None else self.peer.rpartition(":")[0]


def parse_sockets(text: str) -> tuple[Socket, ...] | None:
    """Return the listening and the established sockets of `/proc/net/tcp*` or `lsof -F` text.

    `None` if it is no such table: lsof prints nothing both where it finds nothing and where it fails.
    """
    found = tuple(_kernel_sockets(text)) or tuple(_lsof_sockets(text))
    return found if found or _KERNEL_HEADING in text else None


def may_overlap(one: str, other: str) -> bool:
    """Whether sockets at two addresses may take the same connections: a name may stand for any address."""
    try:
        addresses = ip_address(one), ip_address(other)
    except ValueError:
        return True
    return addresses[0] == addresses[1] or any(address.is_unspecified for address in addresses)


def _kernel_sockets(text: str) -> Iterator[Socket]:
    for line in text.splitlines():
        if row := _KERNEL_ROW.match(line):
            address, port, peer, peer_port, state = row.groups()
            if state == _LISTEN:
                yield Socket(_kernel_address(address), int(port, 16))
            elif state == _ESTABLISHED:
                yield Socket(
                    _kernel_address(address),
                    int(port, 16),
                    f"{_kernel_address(peer)}:{int(peer_port, 16)}",
                )


def _kernel_address(digits: str) -> str:
    """The kernel prints each 32-bit word in the machine's (little-endian) order."""
    words = [bytes.fromhex(digits[start : start + 8])[::-1] for start in range(0, len(digits), 8)]
    if len(words) == 1:
        return str(IPv4Address(words[0]))
    address = IPv6Address(b"".join(words))
    return str(address.ipv4_mapped or address)


def _lsof_sockets(text: str) -> Iterator[Socket]:
    name = None
    for line in text.splitlines():
        if line.startswith("n"):
            name = _LSOF_NAME.match(line)
        elif line.startswith("TST=") and name:
            address, port, peer, peer_port = name.groups()
            if line == "TST=LISTEN":
                yield Socket("0.0.0.0" if address == "*" else address.strip("[]"), int(port))
            elif line == "TST=ESTABLISHED" and peer:
                yield Socket(address.strip("[]"), int(port), f"{peer.strip('[]')}:{peer_port}")
