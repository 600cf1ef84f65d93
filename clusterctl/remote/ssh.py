"""SSH through asyncssh: the only file that imports it, and the one that closes its traps.

asyncssh reports a dropped connection as `exit_status` None without an error, leaves stdin open unless told
otherwise, and has neither a connect timeout nor keepalive by default. Host keys are always verified.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import asyncssh

from clusterctl.errors import ClusterctlError, NodeUnreachable
from clusterctl.remote.command import Command, Output, output_of
from clusterctl.remote.feeding import feed
from clusterctl.remote.target import Destination, expanded
from clusterctl.remote.transport import Connection, Transport

KEEPALIVE_INTERVAL_S = 5
KEEPALIVE_COUNT = 3


class SshTransport(Transport):
    """One SSH connection to one node, used for any number of commands."""

    def __init__(self, node: str, connection: asyncssh.SSHClientConnection) -> None:
        super().__init__(node)
        self._connection = connection

    async def _execute(self, command: Command) -> Output:
        text = command.text()
        try:
            process = await self._connection.create_process("sh -s", encoding=None)
            try:
                with contextlib.suppress(BrokenPipeError):  # a nologin shell leaves without reading
                    process.stdin.write(text)
                    process.stdin.write_eof()
                done = await process.wait()
            finally:
                # A channel that nobody waits for any more would count against sshd's MaxSessions.
                process.close()
        except (asyncssh.Error, OSError) as error:
            raise self._lost(str(error)) from error
        if done.exit_status is None:
            raise self._lost("it ended before the command did")
        return output_of(self.node, done.exit_status, _bytes(done.stdout), _bytes(done.stderr))

    async def _feed(self, command: Command, chunks: AsyncIterator[bytes], hear: Callable[[bytes], None]) -> Output:
        text = command.text(is_fed=True)
        try:
            process = await self._connection.create_process("sh -s", encoding=None)
            try:
                answer = await feed(text, chunks, _Writer(process.stdin), _Reader(process.stdout), hear)
                done = await process.wait()
            finally:
                process.close()
        except (asyncssh.Error, OSError) as error:
            raise self._lost(str(error)) from error
        if done.exit_status is None:
            raise self._lost("it ended before the command did")
        return output_of(self.node, done.exit_status, answer, _bytes(done.stderr))

    async def open_connection(self, address: str, port: int, timeout_s: float) -> Connection:
        """Connect from the node, through a direct-tcpip channel of its sshd."""
        try:
            async with asyncio.timeout(timeout_s):
                reader, writer = await self._connection.open_connection(address, port, encoding=None)
        except asyncssh.Error as error:
            if not isinstance(error, asyncssh.ChannelOpenError) or self._connection.is_closed():
                raise self._lost(str(error)) from error
            if error.code == asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED:
                raise self._forbidden() from error
            raise _channel_error(error) from error
        return _Reader(reader), _Writer(writer)

    def _forbidden(self) -> NodeUnreachable:
        return NodeUnreachable(
            "its sshd forbids connections through it",
            node=self.node,
            hint="AllowTcpForwarding must be yes or local in the node's sshd_config; DisableForwarding and "
            "PermitOpen there, and a restricted key, forbid it too",
        )

    def _lost(self, reason: str) -> NodeUnreachable:
        return NodeUnreachable(
            f"the SSH connection was lost ({reason})",
            node=self.node,
            hint="what ran there may go on; `clusterctl status` shows it once the node is back",
        )

    async def close(self) -> None:
        """Close the connection."""
        self._connection.close()
        await self._connection.wait_closed()


class _Reader:
    """A channel's reader that fails as asyncio's does."""

    def __init__(self, reader: asyncssh.SSHReader[bytes]) -> None:
        self._reader = reader

    async def read(self, n: int) -> bytes:
        with _failing_as_asyncio():
            return await self._reader.read(n)


class _Writer:
    """A channel's writer that fails as asyncio's does."""

    def __init__(self, writer: asyncssh.SSHWriter[bytes]) -> None:
        self.write, self.write_eof, self.close = writer.write, writer.write_eof, writer.close
        self._writer = writer

    async def drain(self) -> None:
        with _failing_as_asyncio():
            await self._writer.drain()


@contextlib.contextmanager
def _failing_as_asyncio() -> Iterator[None]:
    try:
        yield
    except asyncssh.Error as error:
        raise ConnectionResetError(str(error)) from error


def _channel_error(error: asyncssh.ChannelOpenError) -> OSError:
    text = error.reason.lower()
    if "refused" in text:
        return ConnectionRefusedError(error.reason)
    if "timed out" in text or "timeout" in text:
        return TimeoutError(error.reason)
    return OSError(error.reason)


async def connect(node: str, destination: Destination) -> SshTransport:
    """Connect to a node and return its transport.

    `~/.ssh/config` applies (aliases, ProxyJump, IdentityFile, Port, User), as does a running agent.

    Raises:
        NodeUnreachable: with the reason and the next step, for every way in which a connection can fail.
    """
    witness = _KeyWitness()
    try:
        connection = await asyncssh.connect(
            destination.host,
            client_factory=lambda: witness,
            connect_timeout=destination.connect_timeout_s,
            login_timeout=destination.connect_timeout_s,
            keepalive_interval=KEEPALIVE_INTERVAL_S,
            keepalive_count_max=KEEPALIVE_COUNT,
            ignore_encrypted=True,  # a key with a passphrase may still be in the agent
            **_options(destination),
        )
    except (asyncssh.Error, OSError, ValueError) as error:
        raise _connect_error(node, destination, error, witness) from error
    return SshTransport(node, connection)


def _options(destination: Destination) -> dict[str, Any]:
    """Only what is set, so that `~/.ssh/config` can speak."""
    wanted = {
        "username": destination.user,
        "port": destination.port,
        "client_keys": destination.identity_file and [expanded(destination.identity_file)],
        "known_hosts": destination.known_hosts and expanded(destination.known_hosts),
    }
    return {name: value for name, value in wanted.items() if value is not None}


class _KeyWitness(asyncssh.SSHClient):
    """Sees the host key that asyncssh could not verify, to name it in the error; accepts none."""

    offered: asyncssh.SSHKey | None = None
    endpoint: tuple[str, int] = ("", 22)

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        self.offered, self.endpoint = key, (host, port)
        return False


def _connect_error(node: str, destination: Destination, error: Exception, witness: _KeyWitness) -> ClusterctlError:
    by_hand = destination.command()
    if isinstance(error, asyncssh.HostKeyNotVerifiable) and witness.offered is not None:
        return _host_key_error(node, destination, witness)
    if isinstance(error, asyncssh.PermissionDenied):
        reason, hint = str(error), f"make `{by_hand}` work without a password: ssh-copy-id, or an agent"
    elif isinstance(error, TimeoutError) or "timeout" in str(error).lower():
        reason = f"no answer within {destination.connect_timeout_s:g} s"
        hint = "is the machine on? raise ssh.connect_timeout for a slow one"
    elif isinstance(error, OSError) and error.filename:
        reason = f"can't read {error.filename}: {error.strerror}"
        hint = "name a readable file in ssh.identity_file and ssh.known_hosts"
    else:
        reason, hint = _reason(error), f"try `{by_hand}` by hand; it must work first"
    return NodeUnreachable(f"can't connect to {destination}: {reason}", node=node, hint=hint)


def _reason(error: Exception) -> str:
    if isinstance(error, socket.gaierror):
        return error.strerror or type(error).__name__
    if isinstance(error, OSError) and error.errno:
        # Where the system's own words belong, asyncio puts the address.
        return os.strerror(error.errno)
    return str(error) or type(error).__name__


def _host_key_error(node: str, destination: Destination, witness: _KeyWitness) -> NodeUnreachable:
    assert witness.offered is not None
    host, port = witness.endpoint
    kind, fingerprint = witness.offered.get_algorithm(), witness.offered.get_fingerprint()
    file = destination.known_hosts or "~/.ssh/known_hosts"
    known = _known_keys(file, host, port)
    if known:
        return NodeUnreachable(
            f"host key of {host} has CHANGED: it offers {kind} {fingerprint}, {file} has another one",
            node=node,
            hint=f"find out why; if it is right: ssh-keygen -R {_bracketed(host, port)} and add the new one",
        )
    return NodeUnreachable(
        f"host key of {host} is not known: it offers {kind} {fingerprint}",
        node=node,
        hint=f"compare it with the machine's own, then: ssh-keyscan -p {port} {host} >> {file}",
    )


def _known_keys(file: str, host: str, port: int) -> bool:
    path = Path(expanded(file))
    if not path.is_file():
        return False
    keys, authorities, *_ = asyncssh.match_known_hosts(str(path), host, "", port)
    return bool(keys or authorities)


def _bracketed(host: str, port: int) -> str:
    return host if port == 22 else f"'[{host}]:{port}'"


def _bytes(stream: bytes | str | bytearray | memoryview | None) -> bytes:
    return stream.encode() if isinstance(stream, str) else bytes(stream or b"")
