"""What a node says of itself and of the cluster's processes: the part of its facts that needs no llama.cpp."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from clusterctl.cluster.record import Process, parse_process
from clusterctl.errors import ClusterctlError
from clusterctl.model import Listener
from clusterctl.remote import commands
from clusterctl.remote.answer import Section, parse_answer
from clusterctl.remote.command import Command
from clusterctl.remote.sockets import Socket, parse_sockets
from clusterctl.remote.transport import Transport

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
class Observation:
    """System, sockets, and clusterctl's own records on a node. `membership` and `lock` are the head's texts."""

    node: str
    system: System
    sockets: tuple[Socket, ...]
    holders: Mapping[int, tuple[Listener, ...]]
    processes: Mapping[str, Process]
    membership: str | None
    lock: str | None

    def process(self, node: str) -> Process | None:
        """The record that this machine keeps for `node`, if any."""
        return self.processes.get(node)

    def listening(self, port: int) -> tuple[Socket, ...]:
        """The sockets that listen on `port`."""
        return tuple(socket for socket in self.sockets if socket.listens and socket.port == port)

    def attached(self, port: int) -> tuple[Socket, ...]:
        """The connections that others hold to `port` of this node."""
        return tuple(socket for socket in self.sockets if not socket.listens and socket.port == port)


async def observe(transport: Transport, cluster: str, ports: tuple[int, ...] = ()) -> Observation:
    """Look at a node's processes and sockets; nothing is connected to.

    Raises:
        NodeUnreachable: if the node is gone.
    """
    sections = await ask(transport, commands.observe(cluster, ports))
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
    processes = {
        name.removeprefix("record:"): process
        for name, section in sections.items()
        if name.startswith("record:") and (process := parse_process(section.text))
    }
    holders = {
        int(name.removeprefix("holders:")): _holders(name, section)
        for name, section in sections.items()
        if name.startswith("holders:")
    }
    return Observation(
        node=node,
        system=_system(node, sections["system"].lines),
        sockets=parse_sockets(sections["sockets"].text),
        holders=holders,
        processes=processes,
        membership=sections["cluster"].text if "cluster" in sections else None,
        lock=sections["lock"].text if "lock" in sections else None,
    )


def _system(node: str, lines: tuple[str, ...]) -> System:
    try:
        name, arch, hostname, user, boot_id, clock, home, path = lines
        return System(_SYSTEMS[name], arch, hostname, user, boot_id, int(clock), home, path)
    except (ValueError, KeyError) as error:
        seen = lines[0] if lines else "nothing"
        raise ClusterctlError(
            f"the operating system is not supported: {seen}",
            node=node,
            hint="nodes run Linux or macOS; on Windows use WSL 2 with its own sshd",
        ) from error


def _holders(name: str, section: Section) -> tuple[Listener, ...]:
    port = int(name.removeprefix("holders:"))
    rows = {tuple(line.split(" ", 1)) for line in section.lines if line.strip()}
    return tuple(Listener("", port, int(pid), program) for pid, program in sorted(r for r in rows if len(r) == 2))
