"""`connection: local`: the same commands on this machine, without SSH."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from clusterctl.remote.command import Command, Effect, Output, output_of
from clusterctl.remote.feeding import feed
from clusterctl.remote.transport import Connection, Transport


class LocalTransport(Transport):
    """Runs commands in a session of their own, so that Ctrl-C in the terminal reaches only clusterctl."""

    async def _execute(self, command: Command) -> Output:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            "sh", "-s", stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
        )
        try:
            stdout, stderr = await process.communicate(command.text())
        except asyncio.CancelledError:
            # What only reads is ended with all its children; what changes something goes on, as over SSH.
            if command.effect is Effect.READ:
                _kill_with_children(process.pid)
                await process.wait()
            raise
        assert process.returncode is not None
        return output_of(self.node, process.returncode, stdout, stderr)

    async def _feed(self, command: Command, chunks: AsyncIterator[bytes], hear: Callable[[bytes], None]) -> Output:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec("sh", "-s", stdin=pipe, stdout=pipe, start_new_session=True)
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            answer = await feed(command.text(is_fed=True), chunks, process.stdin, process.stdout, hear)
        finally:
            process.stdin.close()
            await process.communicate()
        assert process.returncode is not None
        return output_of(self.node, process.returncode, answer, b"")

    async def open_connection(self, address: str, port: int, timeout_s: float) -> Connection:
        """Connect from this machine."""
        async with asyncio.timeout(timeout_s):
            return await asyncio.open_connection(address, port)

    async def close(self) -> None:
        """Nothing is held open."""


def _kill_with_children(pid: int) -> None:
    """Not by process group: `timeout` moves the program that it watches to a group of its own."""
    import psutil  # noqa: PLC0415 -- only an interrupted command needs it

    with contextlib.suppress(psutil.NoSuchProcess):
        leader = psutil.Process(pid)
        for process in (leader, *leader.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
