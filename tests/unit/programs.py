"""Programs on record that really run on this machine, as those of a cluster's nodes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from clusterctl.cluster.record import Record
from clusterctl.model import Role
from clusterctl.remote import commands
from clusterctl.remote.local import LocalTransport
from clusterctl.remote.transport import Transport
from tests.ssh.waiting import until

CLUSTER = "demo"
STAY = "sleep 1000; true"


def says(line: str, then: str = STAY) -> str:
    """A script that says a line and stays."""
    return f"echo '{line}'; {then}"


def files_of(node: str) -> Path:
    """Where the record of a node's program lies, with its log."""
    return Path.home() / ".local/state/clusterctl" / CLUSTER / "nodes" / node


@asynccontextmanager
async def running(scripts: Mapping[str, str]) -> AsyncIterator[Mapping[str, Transport]]:
    """Run a shell script on each node, and yield the ways to the nodes once every script has said something.

    The node `head` is the head, all others are workers. HOME must be the test's own.
    """
    transports = {node: LocalTransport(node) for node in scripts}
    try:
        for node, script in scripts.items():
            argv, role = ("sh", "-c", script), Role.HEAD if node == "head" else Role.WORKER
            record = Record(CLUSTER, node, role, argv, "127.0.0.1", 50052, "b1", "me", "now", "digest")
            await transports[node].run(commands.start(CLUSTER, node, argv, record=record.to_json(), env={}))
        await until(lambda: all((files_of(node) / "log").read_text() for node in scripts))
        yield transports
    finally:
        for node, transport in transports.items():
            await transport.run(commands.stop(CLUSTER, node, grace_s=1))
