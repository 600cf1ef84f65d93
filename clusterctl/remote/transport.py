"""What every transport offers, and the rules all of them keep."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, Protocol

from clusterctl.errors import CommandTimeout
from clusterctl.remote.command import Command, Effect, Output


class Reader(Protocol):
    """The part of `asyncio.StreamReader` that every transport has; failures are `OSError`s."""

    async def read(self, n: int, /) -> bytes:
        """Return up to `n` bytes, none at the end."""


class Writer(Protocol):
    """The part of `asyncio.StreamWriter` that every transport has; failures are `OSError`s."""

    def write(self, data: bytes, /) -> None:
        """Send bytes."""

    async def drain(self) -> None:
        """Wait until there is room for more."""

    def write_eof(self) -> None:
        """Say that nothing more is sent."""

    def close(self) -> None:
        """Close both directions."""


Connection = tuple[Reader, Writer]

COMMAND_TIMEOUT_S = 60.0


class Transport(ABC):
    """A way to one node. `node` is its name in the inventory."""

    def __init__(self, node: str) -> None:
        self.node = node

    async def run(self, command: Command, timeout_s: float = COMMAND_TIMEOUT_S) -> Output:
        """Run `command` on the node and return its output, whatever its exit status.

        A CHANGE command that has begun is always awaited, also on Ctrl-C: who undoes it afterwards must find
        its whole effect, not half of it.

        Raises:
            NodeUnreachable: if the connection is gone.
            CommandTimeout: after `timeout_s` seconds; what became of the command is unknown then.
        """
        work = asyncio.ensure_future(self._in_time(command, lambda: self._execute(command), timeout_s))
        if command.effect is Effect.READ:
            return await work
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            await asyncio.wait([work])
            work.exception()  # else asyncio would print it as never looked at
            raise

    async def _in_time(
        self, command: Command, work: Callable[[], Coroutine[Any, Any, Output]], timeout_s: float
    ) -> Output:
        try:
            async with asyncio.timeout(timeout_s):
                return await work()
        except TimeoutError as error:
            raise CommandTimeout(
                f"`{command.script}` did not finish within {timeout_s:g} s",
                node=self.node,
                hint="look at the node's load and disks, then run the command again",
            ) from error

    async def feed(
        self, command: Command, chunks: AsyncIterator[bytes], hear: Callable[[bytes], None], timeout_s: float
    ) -> Output:
        """Run a CHANGE command that reads `chunks` from descriptor 3, and `hear` what it says meanwhile.

        Whatever ends this early (Ctrl-C, a lost connection, an error of `chunks`) is the end of the script's
        input: it must then leave nothing behind. Both its streams are in the output's `stdout`.

        Raises:
            NodeUnreachable: if the connection is gone.
            CommandTimeout: after `timeout_s` seconds.
        """
        return await self._in_time(command, lambda: self._feed(command, chunks, hear), timeout_s)

    @abstractmethod
    async def _feed(self, command: Command, chunks: AsyncIterator[bytes], hear: Callable[[bytes], None]) -> Output:
        """Run the command with its input to its end."""

    @abstractmethod
    async def _execute(self, command: Command) -> Output:
        """Run the command to its end."""

    @abstractmethod
    async def open_connection(self, address: str, port: int, timeout_s: float) -> Connection:
        """Open a TCP connection from the node's side of the network.

        Raises:
            ConnectionRefusedError: if nothing listens there.
            TimeoutError: if nothing answers in time.
            OSError: for any other reason the node gives.
            NodeUnreachable: if the way to the node itself is gone, or its sshd forbids such connections.
        """

    @abstractmethod
    async def close(self) -> None:
        """Give the connection back; commands that still run on the node go on."""
