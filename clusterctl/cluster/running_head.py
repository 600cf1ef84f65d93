"""The head that serves a cluster now: found by its record, reached as its clients reach it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise

from clusterctl.cluster.head_api import (
    LOOPBACK_OF_WILDCARD,
    HeadApi,
    base_url,
    head_api,
    is_loopback,
    reachable_address,
)
from clusterctl.cluster.observation import Observation
from clusterctl.cluster.record import Record
from clusterctl.config.inventory import Inventory
from clusterctl.config.recipe import Server
from clusterctl.errors import ClusterctlError, NotReady
from clusterctl.llama.secrets import KEY_VARIABLE
from clusterctl.remote import commands
from clusterctl.remote.transport import Transport
from clusterctl.reports import Access

KEY_FILE_FLAG = "--api-key-file"
CERTIFICATE_FLAG = "--ssl-cert-file"
_LARGEST_FILE_BYTES = 65536


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
    """Open the API of a running head, with the key and the certificate that it was started with.

    Raises:
        ClusterctlError: if a file of theirs can't be read.
    """
    key, certificate = await first_key(head, record), await certificate_of(head, record)
    async with head_api(head, record.address, record.port, key, certificate) as api:
        yield api


def url_of(record: Record) -> str:
    """The base URL of a head's API, as its own machine sees it."""
    has_tls = argument_of(record.argv, CERTIFICATE_FLAG) is not None
    return base_url(reachable_address(record.address), record.port, has_tls=has_tls)


def clients_url(inventory: Inventory, server: Server) -> str:
    """The base URL of the head's API for its clients; where it listens everywhere, by the name of its machine."""
    is_remote_wildcard = server.host in LOOPBACK_OF_WILDCARD and inventory.head.connection != "local"
    address = inventory.head.host if is_remote_wildcard else reachable_address(server.host)
    return base_url(address, server.port, has_tls=server.tls is not None)


def access_of(record: Record, *, is_remote: bool = False) -> Access:
    """What a head asks of its clients; where its keys are in a file and in a variable, the file is named.

    `is_remote`: the head's machine is not the clients'.
    """
    key_file = argument_of(record.argv, KEY_FILE_FLAG)
    key_variable = KEY_VARIABLE if key_file is None and KEY_VARIABLE in record.env else None
    only_on = only_on_node(record.node, record.address, is_remote=is_remote)
    return Access(key_file, key_variable, argument_of(record.argv, CERTIFICATE_FLAG), only_on)


def only_on_node(node: str, address: str, *, is_remote: bool) -> str | None:
    """Return the head's node if it answers on that machine alone, and its clients are on another."""
    return node if is_remote and is_loopback(address) else None


async def first_key(head: Transport, record: Record) -> str | None:
    """Return the first of the keys that a head takes, `None` if it wants none.

    Raises:
        ClusterctlError: if the key file can't be read.
    """
    return next(iter(await keys_of(head, record)), None)


async def keys_of(head: Transport, record: Record) -> tuple[str, ...]:
    """Return the keys that a head takes, from its key file or its environment.

    Raises:
        ClusterctlError: if the key file can't be read.
    """
    file = argument_of(record.argv, KEY_FILE_FLAG)
    if file is None:
        return tuple(filter(None, record.env.get(KEY_VARIABLE, "").split(",")))
    lines = [line.strip() for line in (await _read(head, file)).splitlines()]
    keys = tuple(line for line in lines if line and not line.startswith("#"))
    if not keys:
        raise _unreadable(head, file, "API key")
    return keys


async def certificate_of(head: Transport, record: Record) -> str | None:
    """Return the certificate that a head shows to its clients; `None` if it speaks HTTP.

    Raises:
        ClusterctlError: if the file can't be read.
    """
    file = argument_of(record.argv, CERTIFICATE_FLAG)
    if file is None:
        return None
    certificate = await _read(head, file)
    if not certificate:
        raise _unreadable(head, file, "certificate")
    return certificate


async def _read(head: Transport, file: str) -> str:
    output = await head.run(commands.read(file, 0, _LARGEST_FILE_BYTES))
    return output.stdout.decode(errors="replace")


def _unreadable(head: Transport, file: str, what: str) -> ClusterctlError:
    return ClusterctlError(
        f"no {what} can be read from {file}", node=head.node, hint="the SSH user must be able to read it"
    )


def argument_of(argv: Sequence[str], flag: str) -> str | None:
    """Return what follows a flag in a recorded call, `None` if the flag is not there."""
    return next((value for name, value in pairwise(argv) if name == flag), None)
