"""The dry run: READ commands run, CHANGE commands do not."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from clusterctl.remote.command import Command, Effect, Output
from clusterctl.remote.transport import COMMAND_TIMEOUT_S
from clusterctl.remote.wrapped import WrappedTransport


class DryTransport(WrappedTransport):
    """Wraps a real transport, and lets nothing through that changes a node."""

    async def run(self, command: Command, timeout_s: float = COMMAND_TIMEOUT_S) -> Output:
        """Run a READ command; answer a CHANGE command as if it had worked."""
        if command.effect is Effect.CHANGE:
            return Output(0, b"", "", recorded=True)
        return await super().run(command, timeout_s)

    async def feed(
        self, command: Command, chunks: AsyncIterator[bytes], hear: Callable[[bytes], None], timeout_s: float
    ) -> Output:
        """Answer as if it had worked; nothing is sent."""
        return await self.run(command, timeout_s)
