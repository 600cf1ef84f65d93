"""`connect`: the head's port on this machine, so that a head that listens on loopback only can be used safely."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace

from clusterctl.cluster.head_api import host_and_port, reachable_address
from clusterctl.cluster.membership import destination_of
from clusterctl.cluster.observation import observe
from clusterctl.cluster.record import Record
from clusterctl.cluster.running_head import access_of, running_head, url_of
from clusterctl.config.inventory import Inventory
from clusterctl.errors import UsageError
from clusterctl.remote.target import open_transport
from clusterctl.remote.transport import Transport
from clusterctl.remote.tunnel import tunnel
from clusterctl.reports import ConnectReport

WATCH_INTERVAL_S = 10.0


@dataclass(frozen=True, slots=True)
class Forwarding:
    """A port of this machine that leads to a head's."""

    report: ConnectReport
    head: Transport
    cluster: str

    async def watch(self) -> None:
        """Look at the head again and again; return never.

        Raises:
            NotReady: once it has stopped.
            NodeUnreachable: once its machine is lost.
        """
        while True:
            await asyncio.sleep(WATCH_INTERVAL_S)
            running_head(await observe(self.head, self.cluster))


@asynccontextmanager
async def forwarding(inventory: Inventory, local_port: int | None) -> AsyncIterator[Forwarding]:
    """Forward to the running head while the body runs.

    The local port is the head's own by default, and any that is free for 0.

    Raises:
        NotReady: if the head does not run.
        NodeUnreachable: if the head's machine can't be reached.
        UsageError: if the local port is taken.
    """
    node = inventory.head
    async with AsyncExitStack() as stack:
        head = await open_transport(node.name, destination_of(node))
        stack.push_async_callback(head.close)
        record = running_head(await observe(head, inventory.cluster))
        port = await _listen(stack, head, record, record.port if local_port is None else local_port)
        access = access_of(record)
        report = ConnectReport(
            url=url_of(replace(record, address="127.0.0.1", port=port)),
            node=node.name,
            target=host_and_port(reachable_address(record.address), record.port),
            wants_key=access.wants_key,
            access=access,
        )
        yield Forwarding(report, head, inventory.cluster)


async def _listen(stack: AsyncExitStack, head: Transport, record: Record, port: int) -> int:
    address = reachable_address(record.address)
    try:
        return await stack.enter_async_context(tunnel(head, address, record.port, port))
    except OSError as error:
        raise UsageError(
            f"port {port} of this machine can't be listened on: {os.strerror(error.errno or 0).lower()}",
            hint="choose another with --port, or let --port 0 choose one that is free",
        ) from error
