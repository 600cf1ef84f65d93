"""`logs`: what the head and the workers wrote, line by line, with the node that wrote it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime

from clusterctl.cluster.observation import observe
from clusterctl.cluster.record import Process
from clusterctl.cluster.session import Session, session
from clusterctl.cluster.since import lines_since
from clusterctl.config.inventory import Inventory
from clusterctl.errors import ClusterctlError, UsageError, raise_all
from clusterctl.llama.diagnosis import Diagnosis, NodeLog, Source, diagnose_cluster
from clusterctl.remote import commands
from clusterctl.remote.answer import whole_number
from clusterctl.remote.command import Command
from clusterctl.remote.fanout import Outcomes, on_all
from clusterctl.remote.transport import Transport

FOLLOW_INTERVAL_S = 0.5
# The cause of a failure often stands far before the end.
DIAGNOSED_LINES = 2000


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line and its node."""

    node: str
    text: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """Whose logs (none named: everybody's), how many lines of each (`None`: all), and from what time on."""

    nodes: Collection[str] = ()
    lines: int | None = None
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Logs:
    """The lines, node by node; the likely cause of a failure and its node; the errors of nodes out of reach."""

    lines: tuple[LogLine, ...]
    cause: tuple[str, Diagnosis] | None
    failed: Mapping[str, ClusterctlError]


@dataclass(frozen=True, slots=True)
class _Tail:
    """The end of a program's log: whole lines, a last one without its end, and the bytes written up to there."""

    process: Process
    lines: tuple[str, ...]
    rest: bytes
    written: int

    def select(self, wanted: Wanted, lines: Sequence[str]) -> Sequence[str]:
        """What is wanted of these lines."""
        if wanted.since is not None:
            lines = list(lines_since(lines, self.process.record.started_at, wanted.since))
        return lines if wanted.lines is None else lines[max(0, len(lines) - wanted.lines) :]

    @property
    def all_lines(self) -> list[str]:
        """The whole lines, and the one without its end if there is one."""
        return [*self.lines, *([_text(self.rest)] if self.rest else [])]

    @property
    def log(self) -> NodeLog:
        """The log as a diagnosis reads it."""
        return NodeLog(Source(self.process.record.role), self.lines, self.process.exit_status)


async def read_logs(inventory: Inventory, wanted: Wanted) -> Logs:
    """Return what is wanted of the nodes that can be reached, and what their logs tell of a failure.

    Raises:
        UsageError: if there is no log at all.
    """
    async with _session(inventory, wanted) as opened:
        tails, failed = await _read_tails(opened, inventory.cluster, wanted)
    if not tails and not failed:
        raise UsageError(
            f"no logs of cluster {inventory.cluster} on {', '.join(opened.nodes)}",
            hint="logs live as long as the cluster does; `clusterctl status` shows whether it runs",
        )
    lines = tuple(LogLine(n, text) for n, tail in tails.items() for text in tail.select(wanted, tail.all_lines))
    return Logs(lines, diagnose_cluster({node: tail.log for node, tail in tails.items()}), failed)


async def follow_logs(
    inventory: Inventory, wanted: Wanted, lost: Callable[[ClusterctlError], None], waiting: Callable[[], None]
) -> AsyncIterator[LogLine]:
    """Yield what is wanted, then what is added, for as long as any node can be reached; `lost` is told of others.

    `waiting` is called if there is nothing yet.

    Each node is asked for what is new, twice a second, over the same connection: nothing is left running on a
    node when this ends.

    Raises:
        NodeUnreachable: once no node is left.
    """
    async with _session(inventory, wanted) as opened:
        tails, failed = await _read_tails(opened, inventory.cluster, wanted)
        positions = {node: tail.written for node, tail in tails.items()}
        rests = {node: tail.rest for node, tail in tails.items()}
        if not tails and opened.nodes:
            waiting()
        for node, tail in tails.items():
            for text in tail.select(wanted, tail.lines):
                yield LogLine(node, text)
        while True:
            _drop(opened.nodes, failed, lost)
            await asyncio.sleep(FOLLOW_INTERVAL_S)
            asked = {n: commands.log_from(inventory.cluster, n, positions.get(n, 0)) for n in opened.nodes}
            added = await _read_all(opened.nodes, asked)
            failed = added.failed
            for node, (written, data) in added.done.items():
                if written < positions.get(node, 0):
                    rests[node] = b""
                positions[node] = written
                *whole, rests[node] = (rests.get(node, b"") + data).split(b"\n")
                for line in whole:
                    yield LogLine(node, _text(line))


def _session(inventory: Inventory, wanted: Wanted) -> AbstractAsyncContextManager[Session]:
    nodes = tuple(inventory.node(name) for name in wanted.nodes) or inventory.nodes
    return session(inventory.model_copy(update={"nodes": nodes}))


def _drop(
    nodes: dict[str, Transport], failed: Mapping[str, ClusterctlError], lost: Callable[[ClusterctlError], None]
) -> None:
    for node in failed:
        nodes.pop(node, None)
    if not nodes:
        raise_all(list(failed.values()))
    for error in failed.values():
        lost(error)


async def _read_tails(
    opened: Session, cluster: str, wanted: Wanted
) -> tuple[dict[str, _Tail], Mapping[str, ClusterctlError]]:
    """The ends of all logs, long enough for what is wanted and to find a cause in."""
    everything = wanted.lines is None or wanted.since is not None
    count = max(wanted.lines or 0, DIAGNOSED_LINES)
    asked = {
        node: commands.log_from(cluster, node, 0) if everything else commands.log_tail(cluster, node, count)
        for node in opened.nodes
    }
    seen = await on_all(opened.nodes, lambda _, node: observe(node, cluster))
    read = await _read_all(opened.nodes, asked)
    tails = {}
    for node, (written, data) in read.done.items():
        process = seen.done[node].process(node) if node in seen.done else None
        if process is not None:
            *lines, rest = data.split(b"\n")
            tails[node] = _Tail(process, tuple(map(_text, lines)), rest, written)
    return tails, {**opened.unreachable, **seen.failed, **read.failed}


async def _read_all(
    transports: Mapping[str, Transport], asked: Mapping[str, Command]
) -> Outcomes[tuple[int, bytes]]:
    """For every node that has a log: the bytes written to it so far, and the text that was asked for."""

    async def read_one(node: str, command: Command) -> tuple[int, bytes]:
        output = await transports[node].run(command)
        if output.exit_status == 3:
            return 0, b""
        written, _, data = output.stdout.partition(b"\n")
        written_bytes = whole_number(written.decode(errors="replace"))
        if output.exit_status != 0 or written_bytes is None:
            raise ClusterctlError(f"its log can't be read: {output.stderr.strip()[:200]}", node=node)
        return written_bytes, data

    return await on_all(asked, read_one)


def _text(line: bytes) -> str:
    return line.decode(errors="replace")
