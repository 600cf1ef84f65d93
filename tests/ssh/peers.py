"""What else may be at the other end of a connection: no SSH server, or a link that goes dead."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from tests.ssh.server import HOST


@asynccontextmanager
async def answering(answer: Callable[[asyncio.StreamWriter], None]) -> AsyncIterator[int]:
    """A TCP port that is no SSH server: what connects gets `answer`."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answer(writer)
        with contextlib.suppress(OSError):
            await reader.read()
        writer.close()

    acceptor = await asyncio.start_server(serve, HOST, 0)
    async with acceptor:
        yield acceptor.sockets[0].getsockname()[1]


class Relay:
    """A link that can go dead: nothing arrives any more, and nothing is closed."""

    def __init__(self) -> None:
        self.is_alive = True

    @asynccontextmanager
    async def to(self, port: int) -> AsyncIterator[int]:
        """Listen on a port that leads to another."""

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            far_reader, far_writer = await asyncio.open_connection(HOST, port)
            await asyncio.gather(self._pump(reader, far_writer), self._pump(far_reader, writer))
            for end in (writer, far_writer):
                end.close()

        acceptor = await asyncio.start_server(serve, HOST, 0)
        async with acceptor:
            yield acceptor.sockets[0].getsockname()[1]

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while chunk := await reader.read(65536):
                if self.is_alive:
                    writer.write(chunk)
            writer.write_eof()
