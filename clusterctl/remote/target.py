"""Where a node is reached, and how many logins may go on at once."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from clusterctl.errors import NodeUnreachable
from clusterctl.remote.command import shell_line
from clusterctl.remote.fanout import Outcomes, on_all
from clusterctl.remote.local import LocalTransport
from clusterctl.remote.transport import Transport

MAX_LOGINS = 32


Greet = Callable[[str, Transport], None]


@dataclass(frozen=True, slots=True)
class Destination:
    """An SSH destination. `None` leaves the value to `~/.ssh/config` and its defaults."""

    host: str
    user: str | None = None
    port: int | None = None
    identity_file: str | None = None
    known_hosts: str | None = None
    connect_timeout_s: float = 10.0

    def command(self) -> str:
        """Return the `ssh` command that connects in the same way, to try by hand."""
        identity, known = (path and expanded(path) for path in (self.identity_file, self.known_hosts))
        options = {"-p": self.port, "-l": self.user, "-i": identity, "-o": known and f"UserKnownHostsFile={known}"}
        given = [str(word) for option in options.items() if option[1] is not None for word in option]
        return shell_line(["ssh", *given, self.host])

    def __str__(self) -> str:
        """Return the host, with its port where that is not SSH's own."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return self.host if self.port in (None, 22) else f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine that calls itself so, which is reached from itself alone."""

    hostname: str


Target = Destination | Machine | None


def expanded(path: str) -> str:
    """Return a path of this machine with `~` filled in, which neither a quoting shell nor asyncssh would do."""
    return str(Path(path).expanduser())


async def open_transport(node: str, target: Target) -> Transport:
    """Return a transport to `target`, or to this machine if it is `None`.

    Raises:
        NodeUnreachable: if the node can't be connected to.
    """
    if isinstance(target, Machine) and target.hostname != (here := socket.gethostname()):
        raise NodeUnreachable(
            f"it was brought up on {target.hostname} by `connection: local`, and this is {here}",
            node=node,
            hint=f"run the command on {target.hostname}, or give the node a `host`",
        )
    if not isinstance(target, Destination):
        return LocalTransport(node)
    # asyncssh takes longer to import than everything else here; a cluster on one machine need not wait.
    from clusterctl.remote.ssh import connect  # noqa: PLC0415

    return await connect(node, target)


@asynccontextmanager
async def open_all(
    targets: Mapping[str, Target], greet: Greet = lambda *_: None
) -> AsyncIterator[Outcomes[Transport]]:
    """Connect to all nodes at once and close all connections at the end; failures are kept by node.

    `greet` is told of each as soon as it is connected.
    """
    gate = asyncio.Semaphore(MAX_LOGINS)
    async with AsyncExitStack() as stack:

        async def open_one(node: str, target: Target) -> Transport:
            async with gate:
                transport = await open_transport(node, target)
            stack.push_async_callback(transport.close)
            greet(node, transport)
            return transport

        yield await on_all(targets, open_one)
