"""What a node says of itself and of the cluster's processes: the part of its facts that needs no llama.cpp."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from clusterctl.cluster.record import Process, parse_process
from clusterctl.errors import ClusterctlError
from clusterctl.model import Listener
from clusterctl.remote import commands
from clusterctl.remote.answer import Section, parse_answer, whole_number
from clusterctl.remote.command import Command
from clusterctl.remote.sockets import Socket, parse_sockets
from clusterctl.remote.transport import Transport

SOCKETS_HINT = "on the node, `lsof -nP -iTCP` (macOS) or `cat /proc/net/tcp` (Linux) must show its sockets"
_SYSTEMS = {"Linux": "linux", "Darwin": "macos"}


@dataclass(frozen=True, slots=True)
class System:
    """The machine and the user: `clock_s` is its own time in seconds since 1970."""

    os: str
    arch: str
    hostname: str
    user: str
    boot_id: str
    clock_s: int
    home: str
    path: str


@dataclass(frozen=True, slots=True)
class Vitals:
    """A process: its state as `ps` names it, the processor time that it has used, the memory that it holds."""

    state: str
    processor_s: float | None
    resident_mib: float | None

    @property
    def is_suspended(self) -> bool:
        """Whether it has been stopped by a signal or a debugger, and so neither works nor ends."""
        return self.state.upper().startswith("T")


@dataclass(frozen=True, slots=True)
class Observation:
    """System, sockets, and clusterctl's own records on a node. `membership` and `lock` are the head's texts.

    `sockets` is `None` if they can't be listed. `vitals` are those of the processes on record, by name.
    `moved_bytes` is what each of them has read, holds and sent, in all; only those known are in it. `damaged` are
    the names of records that can't be read.
    """

    node: str
    system: System
    sockets: tuple[Socket, ...] | None
    holders: Mapping[int, tuple[Listener, ...]]
    processes: Mapping[str, Process]
    membership: str | None
    lock: str | None
    moved_bytes: Mapping[str, int] = field(default_factory=dict)
    vitals: Mapping[str, Vitals] = field(default_factory=dict)
    damaged: tuple[str, ...] = ()

    def process(self, node: str) -> Process | None:
        """The record that this machine keeps for `node`, if any."""
        return self.processes.get(node)

    def listening(self, port: int) -> tuple[Socket, ...]:
        """The sockets that listen on `port`, as far as they are known."""
        return tuple(socket for socket in self.sockets or () if socket.listens and socket.port == port)

    def attached(self, port: int) -> tuple[Socket, ...]:
        """The connections that others hold to `port` of this node, as far as they are known."""
        return tuple(socket for socket in self.sockets or () if not socket.listens and socket.port == port)

    def holders_in_words(self, port: int) -> str:
        """Who listens on `port`."""
        known = ", ".join(f"{holder.program} (pid {holder.pid})" for holder in self.holders.get(port, ()))
        return known or "a process that can't be seen, such as another user's process"


async def observe(
    transport: Transport, cluster: str, ports: tuple[int, ...] = (), *, activity: bool = False
) -> Observation:
    """Look at a node's processes and sockets, with `activity` also at the bytes they move; connect to nothing.

    Raises:
        NodeUnreachable: if the node is gone.
    """
    sections = await ask(transport, commands.observe(cluster, ports, activity=activity))
    return parse_observation(transport.node, sections)


async def ask(transport: Transport, command: Command) -> Mapping[str, Section]:
    """Run a command that answers in sections, and return them.

    Raises:
        ClusterctlError: if the script failed, with what it complained of.
    """
    output = await transport.run(command)
    if output.exit_status != 0:
        raise ClusterctlError(
            f"`{command.script}` failed with status {output.exit_status}: {output.stderr.strip()[:300]}",
            node=transport.node,
            hint="look at free disk space and at the user's rights on the node",
        )
    return parse_answer(transport.node, output.stdout)


def parse_observation(node: str, sections: Mapping[str, Section]) -> Observation:
    """Read the sections that `observe` and `probe` share."""
    records = {
        name.removeprefix("record:"): parse_process(section.text)
        for name, section in sections.items()
        if name.startswith("record:")
    }
    holders = {
        port: tuple(_holders(port, section))
        for name, section in sections.items()
        if name.startswith("holders:") and (port := whole_number(name.removeprefix("holders:"))) is not None
    }
    return Observation(
        node=node,
        system=parse_system(node, sections["system"].lines),
        sockets=parse_sockets(sections["sockets"].text),
        holders=holders,
        processes={name: process for name, process in records.items() if process},
        membership=sections["cluster"].text if "cluster" in sections else None,
        lock=sections["lock"].text if "lock" in sections else None,
        moved_bytes=dict(_moved_bytes(sections)),
        vitals=dict(_vitals(sections)),
        damaged=tuple(name for name, process in records.items() if process is None),
    )


def parse_system(node: str, lines: tuple[str, ...]) -> System:
    """Read what `system` of prelude.sh prints.

    Raises:
        ClusterctlError: if it is not of that form, or names a system that is not supported.
    """
    try:
        machine, user, boot_id, clock, home, path = lines
        name, hostname, arch = machine.split(" ")
        return System(_SYSTEMS[name], arch, hostname, user, boot_id, int(clock), home, path)
    except (ValueError, KeyError) as error:
        seen = lines[0] if lines else "nothing"
        raise ClusterctlError(
            f"the operating system is not supported: {seen}",
            node=node,
            hint="nodes run Linux or macOS; on Windows use WSL 2 with its own sshd",
        ) from error


def _moved_bytes(sections: Mapping[str, Section]) -> Iterator[tuple[str, int]]:
    for name, section in sections.items():
        figures = [figure for line in section.lines if (figure := whole_number(line)) is not None]
        if name.startswith("activity:") and figures:
            yield name.removeprefix("activity:"), sum(figures)


def _vitals(sections: Mapping[str, Section]) -> Iterator[tuple[str, Vitals]]:
    for name, section in sections.items():
        words = section.text.split()
        if name.startswith("vitals:") and len(words) >= 2:
            resident_kib = whole_number(words[2]) if len(words) > 2 else None
            resident_mib = None if resident_kib is None else resident_kib / 1024
            yield name.removeprefix("vitals:"), Vitals(words[0], _seconds(words[1]), resident_mib)


def _seconds(text: str) -> float | None:
    """Read `12.34`, `1:02.34` or `1:02:03`; `None` if it is no time."""
    parts = text.split(":")
    if not text.isascii() or not all(part.replace(".", "", 1).isdecimal() for part in parts):
        return None
    return sum(float(part) * 60.0**place for place, part in enumerate(reversed(parts)))


def _holders(port: int, section: Section) -> Iterator[Listener]:
    for line in sorted(set(section.lines)):
        pid, _, program = line.partition(" ")
        if program and (number := whole_number(pid)) is not None:
            yield Listener("", port, number, program)
