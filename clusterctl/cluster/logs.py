"""`logs`: what the head and the workers wrote, line by line, with the node that wrote it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import dataclass

from clusterctl.cluster.session import session
from clusterctl.config.inventory import Inventory
from clusterctl.errors import ClusterctlError, UsageError, raise_all
from clusterctl.remote import commands
from clusterctl.remote.command import Command
from clusterctl.remote.fanout import on_all
from clusterctl.remote.transport import Transport

FOLLOW_INTERVAL_S = 0.5


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line and its node."""

    node: str
    text: str


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Text read from a log, and the log's size in bytes at that time."""

    text: str
    size: int


async def read_logs(
    inventory: Inventory, nodes: Collection[str], lines: int, *, follow: bool
) -> AsyncIterator[LogLine]:
    """Yield the last `lines` lines of each node's log; with `follow`, what is added from then on.

    Following asks each node for what is new, twice a second, over the same connection: nothing is left running
    on a node when it ends.

    Raises:
        UsageError: if there is no log at all.
        NodeUnreachable: if a node is gone.
    """
    wanted = {name: inventory.node(name) for name in nodes} or {n.name: n for n in inventory.nodes}
    async with session(inventory.model_copy(update={"nodes": tuple(wanted.values())})) as opened:
        raise_all(list(opened.unreachable.values()))
        sizes: dict[str, int] = {}
        tails = await _read_all(opened.nodes, {n: commands.log_tail(inventory.cluster, n, lines) for n in wanted})
        if not tails and not follow:
            raise UsageError(
                f"no logs of cluster {inventory.cluster} on {', '.join(wanted)}",
                hint="logs live as long as the cluster does; `clusterctl status` shows whether it runs",
            )
        rests: dict[str, str] = {}
        while True:
            for node, chunk in tails.items():
                sizes[node] = chunk.size
                *whole, rests[node] = (rests.get(node, "") + chunk.text).split("\n")
                for text in whole:
                    yield LogLine(node, text)
            if not follow:
                break
            await asyncio.sleep(FOLLOW_INTERVAL_S)
            asked = {n: commands.log_from(inventory.cluster, n, sizes.get(n, 0)) for n in wanted}
            tails = await _read_all(opened.nodes, asked)
        for node, text in rests.items():
            if text:
                yield LogLine(node, text)


async def _read_all(transports: Mapping[str, Transport], asked: Mapping[str, Command]) -> dict[str, _Chunk]:
    """Read from every node that has a log."""

    async def read_one(node: str, command: Command) -> _Chunk | None:
        output = await transports[node].run(command)
        if output.exit_status == 3:
            return None
        size, _, text = output.stdout.decode(errors="replace").partition("\n")
        if output.exit_status != 0 or not size.strip().isdigit():
            raise ClusterctlError(f"its log can't be read: {output.stderr.strip()[:200]}", node=node)
        return _Chunk(text, int(size))

    read = (await on_all(asked, read_one)).all_done()
    return {node: chunk for node, chunk in read.items() if chunk is not None}
