"""TCP sockets of a node, from ss or the kernel's table (Linux) or from lsof (macOS).

For its own list the kernel walks the whole hash table of sockets, which is as large as memory allows (10 ms at
24 GiB); ss takes a third of that. Where ss is missing, as with busybox, the kernel's list does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address

_LISTEN, _ESTABLISHED = "0A", "01"
# Their headings tell a table without a row from none at all.
_HEADINGS = ("local_address", "Local Address:Port")
_SS_ROW = re.compile(r"^(LISTEN|ESTAB)\s+[0-9]+\s+[0-9]+\s+(\S+):([0-9]{1,5})\s+(\S+):([0-9]{1,5}|\*)(?:\s|$)")
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
    """Return the listening and the established sockets of `ss -tan`, `/proc/net/tcp*` or `lsof -F` text.

    `None` if it is no such table: lsof prints nothing both where it finds nothing and where it fails.
    """
    # The kernel may list one twice, if others come and go meanwhile.
    tables = (tuple(dict.fromkeys(read(text))) for read in (_ss_sockets, _kernel_sockets, _lsof_sockets))
    found = next(filter(None, tables), ())
    return found if found or any(heading in text for heading in _HEADINGS) else None


def may_overlap(one: str, other: str) -> bool:
    """Whether sockets at two addresses may take the same connections: a name may stand for any address."""
    try:
        addresses = ip_address(one), ip_address(other)
    except ValueError:
        return True
    return addresses[0] == addresses[1] or any(address.is_unspecified for address in addresses)


def _ss_sockets(text: str) -> Iterator[Socket]:
    for line in text.splitlines():
        if row := _SS_ROW.match(line):
            state, address, port, peer, peer_port = row.groups()
            if state == "LISTEN":
                yield Socket(_ss_address(address), int(port))
            elif peer_port != "*":
                yield Socket(_ss_address(address), int(port), f"{_ss_address(peer)}:{int(peer_port)}")


def _ss_address(text: str) -> str:
    """`*` takes IPv4 and IPv6 alike; an interface may stand behind the address (`127.0.0.53%lo`)."""
    bare = text.partition("%")[0].strip("[]")
    mapped = bare.removeprefix("::ffff:") if "." in bare else bare
    return "::" if text == "*" else mapped


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
