"""The workers' side while links are measured: a sample on each RPC port, until nobody wants it any more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from clusterctl.errors import ClusterctlError
from clusterctl.remote import commands
from clusterctl.remote.fanout import on_all
from clusterctl.remote.transport import Transport

SAMPLE_BYTES = 4 * 1024 * 1024
START_S = 10
END_S = 5
LISTENING = "listening"


@asynccontextmanager
async def serving(
    workers: Mapping[str, Transport], endpoints: Mapping[str, tuple[str, int]], timeout_s: int
) -> AsyncIterator[Mapping[str, str]]:
    """Serve a sample at every endpoint while the body runs, and yield why a node does not, for those that don't.

    At the end the ports are free again, for `up` may follow at once.
    """
    said: dict[str, asyncio.Future[str]] = {node: asyncio.Future() for node in endpoints}
    over = asyncio.Event()

    async def serve(node: str, endpoint: tuple[str, int]) -> None:
        command = commands.link_serve(*endpoint, size_bytes=SAMPLE_BYTES, timeout_s=timeout_s)
        line = _FirstLine(said[node])
        try:
            await workers[node].feed(command, _nothing_until(over), line.hear, timeout_s + END_S)
        except ClusterctlError as error:
            line.take(error.message)
        line.take("it ended without a word")

    serving_all = asyncio.ensure_future(on_all(endpoints, serve))
    try:
        await asyncio.wait(said.values(), timeout=START_S)
        late = f"it did not listen within {START_S} s"
        lines = {node: line.result() if line.done() else late for node, line in said.items()}
        yield {node: line for node, line in lines.items() if line != LISTENING}
    finally:
        over.set()
        await asyncio.wait([serving_all], timeout=END_S)
        serving_all.cancel()
        await asyncio.wait([serving_all])


class _FirstLine:
    """Puts the first line that a script says into `line`."""

    def __init__(self, line: asyncio.Future[str]) -> None:
        self._line = line
        self._heard = b""

    def hear(self, data: bytes) -> None:
        self._heard += data
        first, newline, _ = self._heard.partition(b"\n")
        if newline:
            self.take(first.decode(errors="replace").strip()[:200])

    def take(self, text: str) -> None:
        if not self._line.done():
            self._line.set_result(text)


async def _nothing_until(over: asyncio.Event) -> AsyncIterator[bytes]:
    """An input that stays open so long; its end ends the script."""
    await over.wait()
    yield b""
