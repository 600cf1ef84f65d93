"""`connection: local`: the same commands on this machine, without SSH."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Callable

from clusterctl.errors import NodeUnreachable
from clusterctl.remote.command import Command, Effect, Output, output_of
from clusterctl.remote.feeding import feed
from clusterctl.remote.transport import Connection, Transport

END_GRACE_S = 1.0


class LocalTransport(Transport):
    """Runs commands in a session of their own, so that Ctrl-C in the terminal reaches only clusterctl."""

    async def _execute(self, command: Command) -> Output:
        process = await self._start()
        try:
            stdout, stderr = await process.communicate(command.text())
        except asyncio.CancelledError:
            # What only reads is ended with all its children; what changes something goes on, as over SSH.
            if command.effect is Effect.READ:
                await _end_session(process)
            raise
        assert process.returncode is not None
        return output_of(self.node, process.returncode, stdout, stderr)

    async def _feed(self, command: Command, chunks: AsyncIterator[bytes], hear: Callable[[bytes], None]) -> Output:
        process = await self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            answer = await feed(command.text(is_fed=True), chunks, process.stdin, process.stdout, hear)
        finally:
            process.stdin.close()
            await process.communicate()
        assert process.returncode is not None
        return output_of(self.node, process.returncode, answer, b"")

    async def _start(self) -> asyncio.subprocess.Process:
        pipe = asyncio.subprocess.PIPE
        try:
            return await asyncio.create_subprocess_exec(
                "sh", "-s", stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
            )
        except OSError as error:
            raise NodeUnreachable(
                f"`sh` can't be started on this machine: {error.strerror}",
                node=self.node,
                hint="it has too few processes, open files or memory left, or a PATH without `sh`",
            ) from error

    async def open_connection(self, address: str, port: int, timeout_s: float) -> Connection:
        """Connect from this machine."""
        async with asyncio.timeout(timeout_s):
            return await asyncio.open_connection(address, port)

    async def close(self) -> None:
        """Nothing is held open."""


async def _end_session(process: asyncio.subprocess.Process) -> None:
    """First by SIGTERM, so that a script can remove what it made."""
    _signal_session(process.pid, signal.SIGTERM)
    try:
        await _see_end(process)
    finally:
        _signal_session(process.pid, signal.SIGKILL)
    await _see_end(process)


async def _see_end(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(END_GRACE_S):
            await process.communicate()


def _signal_session(leader: int, number: int) -> None:
    """Not by process group: `timeout` moves the program that it watches to a group of its own."""
    import psutil  # noqa: PLC0415 -- only an interrupted command needs it

    for pid in psutil.pids():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.getsid(pid) == leader:
                os.kill(pid, number)
