"""Scripts with input of their own over SSH: what arrives, and what is left when it is cut off or damaged."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

import asyncssh
import pytest

from clusterctl.errors import CommandTimeout, NodeUnreachable
from clusterctl.remote import commands
from clusterctl.remote.command import READY, Command
from clusterctl.remote.ssh import SshTransport, connect
from tests.ssh.server import Machine, Server, posix_shell, serving
from tests.ssh.waiting import until
from tests.unit.installing import make_tar

ROOT = "~/builds"
TIMEOUT_S = 20.0


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """An archive of some megabytes: more than any buffer on the way holds."""
    files = {"llama-server": os.urandom(8_000_000)}
    return make_tar(tmp_path_factory.mktemp("archive") / "archive.tar.gz", files).read_bytes()


def putting(content: bytes) -> Command:
    """Put an archive with this content."""
    sha256 = hashlib.sha256(content).hexdigest()
    return commands.install_put(
        ROOT, "b1", size_bytes=len(content), sha256=sha256, path=os.environ["PATH"], cmake_flags=()
    )


async def chunks(content: bytes, sent: asyncio.Event | None = None) -> AsyncIterator[bytes]:
    """The content, and then an input that stays open."""
    for start in range(0, len(content), 100_000):
        yield content[start : start + 100_000]
    if sent:
        sent.set()
    await asyncio.Event().wait()


def deaf(_data: bytes) -> None:
    """Hear nothing."""


def left(server: Server) -> set[str]:
    return {entry.name for entry in (server.home / "builds").iterdir()}


async def test_all_bytes_arrive(node: SshTransport, server: Server, content: bytes) -> None:
    output = await node.feed(putting(content), chunks(content), deaf, TIMEOUT_S)
    assert (output.exit_status, output.stdout) == (0, b"")
    assert left(server) == {"b1"}
    assert (server.home / "builds" / "b1" / "llama-server").stat().st_size == 8_000_000


async def test_what_is_damaged_on_the_way_is_told_and_thrown_away(tmp_path: Path, content: bytes) -> None:
    async def damaging(process: asyncssh.SSHServerProcess[bytes], machine: Machine) -> None:
        read = process.stdin.read

        async def damaged(count: int = -1) -> bytes:
            data = await read(count)
            return data if READY.encode() in data or len(data) < 1000 else data[:-1] + bytes([data[-1] ^ 1])

        vars(process.stdin)["read"] = damaged
        await posix_shell(process, machine)

    async with serving(tmp_path / "node", damaging) as server:
        node = await connect("strix1", server.destination)
        output = await node.feed(putting(content), chunks(content), deaf, TIMEOUT_S)
        await node.close()
        assert output.exit_status == 4
        assert output.stdout.startswith(b"sha256 is ")
        assert left(server) == set()


async def test_nothing_is_left_of_what_is_interrupted(node: SshTransport, server: Server, content: bytes) -> None:
    sent = asyncio.Event()
    command = putting(content + content)
    feeding = asyncio.create_task(node.feed(command, chunks(content, sent), deaf, TIMEOUT_S))
    await sent.wait()
    feeding.cancel()
    with pytest.raises(asyncio.CancelledError):
        await feeding
    await until(lambda: left(server) == set())


async def test_nothing_is_left_when_the_connection_drops(
    node: SshTransport, server: Server, content: bytes
) -> None:
    sent = asyncio.Event()
    command = putting(content + content)
    feeding = asyncio.create_task(node.feed(command, chunks(content, sent), deaf, TIMEOUT_S))
    await sent.wait()
    server.machine.drop_connections()
    with pytest.raises(NodeUnreachable, match="the SSH connection was lost"):
        await feeding
    await until(lambda: left(server) == set())


async def test_a_script_that_never_ends_is_given_up(node: SshTransport, server: Server, content: bytes) -> None:
    with pytest.raises(CommandTimeout, match="`install_put` did not finish"):
        await node.feed(putting(content + content), chunks(content), deaf, 0.5)
    await until(lambda: left(server) == set())


async def test_a_script_that_leaves_early_is_heard(node: SshTransport, server: Server, content: bytes) -> None:
    (server.home / "builds").write_text("no directory")
    output = await node.feed(putting(content), chunks(content), deaf, TIMEOUT_S)
    assert output.exit_status == 1
    assert b"builds" in output.stdout


async def test_an_input_that_fails_is_not_taken_for_a_lost_connection(node: SshTransport, content: bytes) -> None:
    async def failing() -> AsyncIterator[bytes]:
        yield content[:1000]
        raise EOFError("the file was cut")

    with pytest.raises(EOFError, match="the file was cut"):
        await node.feed(putting(content), failing(), deaf, TIMEOUT_S)
