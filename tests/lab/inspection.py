"""What runs and listens on a node, read from the machine's /proc: no tool on the node can colour it."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
import struct
from dataclasses import dataclass
from pathlib import Path

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
