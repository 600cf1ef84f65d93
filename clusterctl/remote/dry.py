"""The dry run: READ commands run, CHANGE commands are written down."""

from __future__ import annotations

from clusterctl.remote.command import Command, Effect, Output
from clusterctl.remote.transport import COMMAND_TIMEOUT_S, Connection, Transport


class DryTransport(Transport):
    """Wraps a real transport. `transcript` collects what would have been changed, in order."""

    def __init__(self, real: Transport, transcript: list[tuple[str, Command]]) -> None:
        super().__init__(real.node)
        self._real = real
        self._transcript = transcript

    async def run(self, command: Command, timeout_s: float = COMMAND_TIMEOUT_S) -> Output:
        """Run a READ command; record a CHANGE command and answer as if it had worked."""
        if command.effect is Effect.CHANGE:
            self._transcript.append((self.node, command))
            return Output(0, b"", "", recorded=True)
        return await self._real.run(command, timeout_s)

    async def _execute(self, command: Command) -> Output:
        return await self._real._execute(command)

    async def open_connection(self, address: str, port: int, timeout_s: float) -> Connection:
        """Pass through: connecting changes nothing."""
        return await self._real.open_connection(address, port, timeout_s)

    async def close(self) -> None:
        """Close the real transport."""
        await self._real.close()
