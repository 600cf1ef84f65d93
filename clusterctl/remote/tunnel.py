"""A local port that leads to an address on a node's side of the network."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from clusterctl.errors import ClusterctlError
from clusterctl.remote.transport import Reader, Transport, Writer

CONNECT_TIMEOUT_S = 10.0


@asynccontextmanager
async def tunnel(transport: Transport, address: str, port: int, local_port: int = 0) -> AsyncIterator[int]:
    """Listen on loopback while the body runs, and yield the port; each connection goes on to `address:port`.

    Raises:
        OSError: if `local_port` is taken.
        NodeUnreachable: if no connection can be had through the node, whoever listens at its other end.
    """
    # At the near end this would show as a closed connection too, and nobody would be told why.
    with contextlib.suppress(OSError):
        _, opened = await transport.open_connection(address, port, CONNECT_TIMEOUT_S)
        opened.close()
    pumps: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        pumps.add(task)
        # asyncio reports a cancelled handler as a fault; here it is how the tunnel ends.
        with contextlib.suppress(asyncio.CancelledError):
            await _join(transport, address, port, reader, writer)
        pumps.discard(task)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", local_port)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for pump in pumps:
            pump.cancel()
        if pumps:
            await asyncio.wait(pumps)
        await server.wait_closed()


async def _join(transport: Transport, address: str, port: int, reader: Reader, writer: Writer) -> None:
    # A far end that can't be reached shows at the near end as a closed connection.
    with contextlib.suppress(OSError, ClusterctlError):
        far_reader, far_writer = await transport.open_connection(address, port, CONNECT_TIMEOUT_S)
        try:
            await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))
        finally:
            far_writer.close()


async def _pump(reader: Reader, writer: Writer) -> None:
    while chunk := await reader.read(65536):
        writer.write(chunk)
        await writer.drain()
    writer.write_eof()
