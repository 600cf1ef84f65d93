"""A transport around another one: passes everything on, so that a subclass says only what it does otherwise."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from clusterctl.remote.command import Command, Output
from clusterctl.remote.transport import COMMAND_TIMEOUT_S, Connection, Transport


class WrappedTransport(Transport):
    """Does what the real one does."""

    def __init__(self, real: Transport) -> None:
        super().__init__(real.node)
        self._real = real

    async def run(self, command: Command, timeout_s: float = COMMAND_TIMEOUT_S) -> Output:
        """Run a command on the node."""
        return await self._real.run(command, timeout_s)

    async def feed(
        self, command: Command, chunks: AsyncIterator[bytes], hear: Callable[[bytes], None], timeout_s: float
    ) -> Output:
        """Run a command that is fed."""
        return await self._real.feed(command, chunks, hear, timeout_s)

    async def _feed(self, command: Command, chunks: AsyncIterator[bytes], hear: Callable[[bytes], None]) -> Output:
        return await self._real._feed(command, chunks, hear)

    async def _execute(self, command: Command) -> Output:
        return await self._real._execute(command)

    async def open_connection(self, address: str, port: int, timeout_s: float) -> Connection:
        """Connect from the node."""
        return await self._real.open_connection(address, port, timeout_s)

    async def close(self) -> None:
        """Close the real transport."""
        await self._real.close()
