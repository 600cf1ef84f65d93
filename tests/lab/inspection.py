"""What runs and listens on a node, read from the machine's /proc: no tool on the node can colour it."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ETH_P_IP = 0x0800  # linux/if_ether.h
SO_RCVBUFFORCE = 33  # asm-generic/socket.h
CAPTURE_BYTES = 64 * 1024 * 1024
LISTEN = "0A"  # TCP_LISTEN of include/net/tcp_states.h


@dataclass(frozen=True, slots=True)
class NodeProcess:
    """A process of a node; `pid` as the node sees it, `machine_pid` as the machine does."""

    pid: int
    machine_pid: int
    argv: tuple[str, ...]


@dataclass(frozen=True, slots=True, order=True)
class Listener:
    """A TCP socket that waits for connections."""

    address: str
    port: int


def processes_beside(machine_pid: int) -> list[NodeProcess]:
    """All living processes in the PID namespace of a process, by their pid there; zombies are not alive."""
    namespace = os.readlink(f"/proc/{machine_pid}/ns/pid")
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):  # ended meanwhile, or not even root may look: not a node's
                if os.readlink(entry / "ns" / "pid") == namespace:
                    found += _process(entry)
    return sorted(found, key=lambda process: process.pid)


def _process(entry: Path) -> list[NodeProcess]:
    status = (entry / "status").read_text()
    pids = re.search(r"^NSpid:\s+(.*)$", status, re.MULTILINE)
    argv = (entry / "cmdline").read_bytes()
    if pids is None or not argv:
        return []
    words = argv.rstrip(b"\0").decode(errors="replace").split("\0")
    return [NodeProcess(int(pids[1].split()[-1]), int(entry.name), tuple(words))]


def listeners_beside(machine_pid: int) -> list[Listener]:
    """All listening TCP sockets in the network namespace of a process."""
    found = set()
    for table in ("tcp", "tcp6"):
        for row in Path(f"/proc/{machine_pid}/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *_ = row.split()
            if state == LISTEN:
                address, port = local.split(":")
                found.add(Listener(_address(address), int(port, 16)))
    return sorted(found)


def _address(text: str) -> str:
    """An address of /proc/net/tcp: hexadecimal words of 32 bits in the machine's byte order."""
    words = [int(text[i : i + 8], 16) for i in range(0, len(text), 8)]
    return str(ipaddress.ip_address(b"".join(struct.pack("=I", word) for word in words)))


class Knocks:
    """Who wants to connect to the node in whose network it is made, from then on: seen on the wire."""

    def __init__(self) -> None:
        self._packets = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_IP))
        self._packets.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, CAPTURE_BYTES)
        self._packets.setblocking(False)

    def ports(self) -> list[int]:
        """The port that each new connection was meant for, since the last call."""
        return [port for packet in self._read() if (port := _opened_port(packet)) is not None]

    def close(self) -> None:
        """Stop watching."""
        self._packets.close()

    def _read(self) -> Iterator[bytes]:
        with contextlib.suppress(BlockingIOError):
            while True:
                yield self._packets.recv(128)


def _opened_port(packet: bytes) -> int | None:
    """The destination of the first packet of a TCP connection (RFC 791, RFC 9293); None for any other packet."""
    tcp = packet[(packet[0] & 15) * 4 :]
    syn, ack = 2, 16
    if packet[9] != socket.IPPROTO_TCP or tcp[13] & (syn | ack) != syn:
        return None
    port: int = struct.unpack_from(">H", tcp, 2)[0]
    return port
