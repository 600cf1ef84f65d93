"""Changes that must be allowed, each at the time at which it is made."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

from clusterctl.remote.command import Command, Effect, Output
from clusterctl.remote.transport import COMMAND_TIMEOUT_S, Transport
from clusterctl.remote.wrapped import WrappedTransport

Guard = Callable[[], Awaitable[None]]


class GuardedTransport(WrappedTransport):
    """Wraps a transport; before every CHANGE command `guard` is asked, which raises where none may be made."""

    def __init__(self, real: Transport, guard: Guard) -> None:
        super().__init__(real)
        self._guard = guard

    async def run(self, command: Command, timeout_s: float = COMMAND_TIMEOUT_S) -> Output:
        """Run a command on the node, if it is allowed."""
        if command.effect is Effect.CHANGE:
            await self._guard()
        return await super().run(command, timeout_s)

    async def feed(
        self, command: Command, chunks: AsyncIterator[bytes], hear: Callable[[bytes], None], timeout_s: float
    ) -> Output:
        """Run a command that is fed, if it is allowed."""
        await self._guard()
        return await super().feed(command, chunks, hear, timeout_s)
