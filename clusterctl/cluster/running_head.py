"""The head that serves a cluster now: found by its record, reached as its clients reach it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise

from clusterctl.cluster.head_api import HeadApi, head_api
from clusterctl.cluster.observation import Observation
from clusterctl.cluster.record import Record
from clusterctl.errors import ClusterctlError, NotReady
from clusterctl.remote import commands
from clusterctl.remote.transport import Transport

KEY_FILE_FLAG = "--api-key-file"


def running_head(seen: Observation) -> Record:
    """Return the record of the head that runs on a node.

    Raises:
        NotReady: if none does.
    """
    process = seen.process(seen.node)
    if process is None or not process.runs:
        raise NotReady(
            "the head does not run" if process is None else "the head has stopped",
            node=seen.node,
            hint="`clusterctl up` brings the cluster up, `clusterctl status` shows what runs",
        )
    return process.record


@asynccontextmanager
async def open_running_head(head: Transport, record: Record) -> AsyncIterator[HeadApi]:
    """Open the API of a running head, with the first key of its key file if it wants one."""
    async with head_api(head, record.address, record.port, await _first_key(head, record)) as api:
        yield api


async def _first_key(head: Transport, record: Record) -> str | None:
    file = argument_of(record.argv, KEY_FILE_FLAG)
    if file is None:
        return None
    output = await head.run(commands.read(file, 0, 4096))
    keys = output.stdout.decode(errors="replace").split()
    if not keys:
        raise ClusterctlError(
            f"no API key can be read from {file}", node=head.node, hint="the SSH user must be able to read it"
        )
    return keys[0]


def argument_of(argv: Sequence[str], flag: str) -> str | None:
    """Return what follows a flag in a recorded call, `None` if the flag is not there."""
    return next((value for name, value in pairwise(argv) if name == flag), None)
