"""What every transport offers, and the rules all of them keep."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import Protocol

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
        work = asyncio.ensure_future(self._run_in_time(command, timeout_s))
        if command.effect is Effect.READ:
            return await work
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            await asyncio.wait([work])
            work.exception()  # else asyncio would print it as never looked at
            raise

    async def _run_in_time(self, command: Command, timeout_s: float) -> Output:
        try:
            async with asyncio.timeout(timeout_s):
                return await self._execute(command)
        except TimeoutError as error:
            raise CommandTimeout(
                f"`{command.script}` did not finish within {timeout_s:g} s",
                node=self.node,
                hint="look at the node's load and disks, then run the command again",
            ) from error

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
            NodeUnreachable: if the way to the node itself is gone.
        """

    @abstractmethod
    async def close(self) -> None:
        """Give the connection back; commands that still run on the node go on."""
