"""Where a node is reached, and how many logins may go on at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from clusterctl.remote.fanout import Outcomes, on_all
from clusterctl.remote.local import LocalTransport
from clusterctl.remote.transport import Transport

MAX_LOGINS = 32


@dataclass(frozen=True, slots=True)
class Destination:
    """An SSH destination. `None` leaves the value to `~/.ssh/config` and its defaults."""

    host: str
    user: str | None = None
    port: int | None = None
    identity_file: str | None = None
    known_hosts: str | None = None
    connect_timeout_s: float = 10.0


async def open_transport(node: str, destination: Destination | None) -> Transport:
    """Return a transport to `destination`, or to this machine if it is `None`.

    Raises:
        NodeUnreachable: if the node can't be connected to.
    """
    if destination is None:
        return LocalTransport(node)
    # asyncssh takes longer to import than everything else here; a cluster on one machine need not wait.
    from clusterctl.remote.ssh import connect  # noqa: PLC0415

    return await connect(node, destination)


@asynccontextmanager
async def open_all(targets: Mapping[str, Destination | None]) -> AsyncIterator[Outcomes[Transport]]:
    """Connect to all nodes at once and close all connections at the end; failures are kept by node."""
    gate = asyncio.Semaphore(MAX_LOGINS)
    async with AsyncExitStack() as stack:

        async def open_one(node: str, destination: Destination | None) -> Transport:
            async with gate:
                transport = await open_transport(node, destination)
            stack.push_async_callback(transport.close)
            return transport

        yield await on_all(targets, open_one)
