"""The dry run: READ commands run, CHANGE commands are written down."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from clusterctl.remote.command import Command, Effect, Output
from clusterctl.remote.transport import COMMAND_TIMEOUT_S, Transport
from clusterctl.remote.wrapped import WrappedTransport


class DryTransport(WrappedTransport):
    """Wraps a real transport. `transcript` collects what would have been changed, in order."""

    def __init__(self, real: Transport, transcript: list[tuple[str, Command]]) -> None:
        super().__init__(real)
        self._transcript = transcript

    async def run(self, command: Command, timeout_s: float = COMMAND_TIMEOUT_S) -> Output:
        """Run a READ command; record a CHANGE command and answer as if it had worked."""
        if command.effect is Effect.CHANGE:
            self._transcript.append((self.node, command))
            return Output(0, b"", "", recorded=True)
        return await super().run(command, timeout_s)

    async def feed(
        self, command: Command, chunks: AsyncIterator[bytes], hear: Callable[[bytes], None], timeout_s: float
    ) -> Output:
        """Record the command; nothing is sent."""
        return await self.run(command, timeout_s)
