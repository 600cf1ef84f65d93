"""Running commands over SSH: what arrives, what is cancelled, and how each broken connection shows."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import asyncssh
import pytest

from clusterctl.errors import CommandTimeout, NodeUnreachable
from clusterctl.remote import commands, ssh
from clusterctl.remote.command import Command, Effect
from clusterctl.remote.ssh import SshTransport, connect
from tests.ssh.peers import Relay
from tests.ssh.server import Machine, Server, Shell, posix_shell, serving
from tests.ssh.waiting import until

# Says that it began, then waits until it may go on: BEGUN GO DONE
WAITING = 'touch "$0"; until [ -e "$1" ]; do sleep 0.02; done; touch "$2"'

Process = asyncssh.SSHServerProcess[bytes]


@asynccontextmanager
async def node_with(shell: Shell, directory: Path) -> AsyncIterator[SshTransport]:
    """A connection to a node whose login shell is `shell`."""
    async with serving(directory, shell) as server:
        transport = await connect("strix1", server.destination)
        yield transport
        await transport.close()


async def test_output_of_both_streams_and_the_status_arrive(node: SshTransport) -> None:
    output = await node.run(commands.read("/no/such/file", 0, 1))
    assert output.exit_status == 1
    assert output.stdout == b""
    assert output.stderr == "no such file, or not readable: /no/such/file\n"


async def test_bytes_of_a_file_arrive_as_they_are(node: SshTransport, server: Server) -> None:
    content = bytes(range(256)) * 4096
    (server.home / "odd name's").write_bytes(content)
    output = await node.run(commands.read("~/odd name's", 5, len(content)))
    assert output.stdout == content[5:]


async def test_many_commands_share_one_connection(node: SshTransport, server: Server) -> None:
    outputs = await asyncio.gather(*(node.run(commands.observe("demo", ())) for _ in range(8)))
    assert {output.exit_status for output in outputs} == {0}
    assert len(server.machine.connected) == 1


async def test_what_a_login_script_prints_is_not_taken_for_an_answer(tmp_path: Path) -> None:
    async def chatty(process: Process, machine: Machine) -> None:
        process.stdout.write(b"Welcome!\n\x1b[31msystem 0 3\nxyz\n")
        await posix_shell(process, machine)

    async with node_with(chatty, tmp_path / "node") as node:
        quiet = await node.run(commands.observe("demo", ()))
    assert quiet.stdout.startswith(b"system 0 ")
    assert b"xyz" not in quiet.stdout


async def test_a_nologin_shell_is_told_by_its_own_words(tmp_path: Path) -> None:
    async def nologin(process: Process, _machine: Machine) -> None:
        process.stdout.write(b"This account is currently not available.\n")
        process.exit(1)

    async with node_with(nologin, tmp_path / "node") as node:
        with pytest.raises(NodeUnreachable, match="This account is currently not available") as caught:
            await node.run(commands.observe("demo", ()))
    assert "/bin/sh" in str(caught.value.hint)


async def test_a_connection_that_drops_in_the_middle_is_lost(tmp_path: Path) -> None:
    async def dropping(process: Process, machine: Machine) -> None:
        process.stdout.write(b"::clusterctl::\nsystem 0 100\nLin")
        await process.stdout.drain()
        machine.drop_connections()

    async with node_with(dropping, tmp_path / "node") as node:
        with pytest.raises(NodeUnreachable, match="connection was lost") as caught:
            await node.run(commands.observe("demo", ()))
        assert caught.value.node == "strix1"
        with pytest.raises(NodeUnreachable, match="connection was lost"):
            await node.run(commands.observe("demo", ()))


async def test_a_command_that_ends_without_a_status_has_not_succeeded(tmp_path: Path) -> None:
    async def vanishing(process: Process, _machine: Machine) -> None:
        process.stdout.write(b"::clusterctl::\n")
        process.close()

    async with node_with(vanishing, tmp_path / "node") as node:
        with pytest.raises(NodeUnreachable, match="ended before the command did"):
            await node.run(commands.observe("demo", ()))


async def test_a_shell_killed_by_a_signal_has_not_succeeded(tmp_path: Path) -> None:
    async def killed(process: Process, _machine: Machine) -> None:
        process.stdout.write(b"::clusterctl::\n")
        process.exit_with_signal("KILL")

    async with node_with(killed, tmp_path / "node") as node:
        assert (await node.run(commands.observe("demo", ()))).exit_status != 0


async def test_silence_ends_in_a_timeout_and_gives_the_channel_back(tmp_path: Path) -> None:
    closed = asyncio.Event()

    async def silent(process: Process, _machine: Machine) -> None:
        with contextlib.suppress(asyncssh.Error):
            await process.stdin.read()
        await process.wait_closed()
        closed.set()

    async with node_with(silent, tmp_path / "node") as node:
        with pytest.raises(CommandTimeout, match=r"`observe` did not finish within 0\.1 s") as caught:
            await node.run(commands.observe("demo", ()), timeout_s=0.1)
        assert caught.value.exit_code == 3
        async with asyncio.timeout(5):
            await closed.wait()


async def test_a_reading_command_ends_at_once_when_it_is_cancelled(node: SshTransport, server: Server) -> None:
    marks = [str(server.home / name) for name in ("begun", "go", "done")]
    running = asyncio.create_task(node.run(Command("run", ("sh", "-c", WAITING, *marks))))
    await until((server.home / "begun").exists)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not (server.home / "done").exists()
    (server.home / "go").touch()


async def test_a_changing_command_is_awaited_when_it_is_cancelled(node: SshTransport, server: Server) -> None:
    marks = [str(server.home / name) for name in ("begun", "go", "done")]
    running = asyncio.create_task(node.run(Command("run", ("sh", "-c", WAITING, *marks), Effect.CHANGE)))
    await until((server.home / "begun").exists)
    running.cancel()
    assert (await node.run(commands.observe("demo", ()))).exit_status == 0
    assert not running.done()
    (server.home / "go").touch()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (server.home / "done").exists()


async def test_a_changing_command_goes_on_when_the_connection_breaks(node: SshTransport, server: Server) -> None:
    marks = [str(server.home / name) for name in ("begun", "go", "done")]
    running = asyncio.create_task(node.run(Command("run", ("sh", "-c", WAITING, *marks), Effect.CHANGE)))
    await until((server.home / "begun").exists)
    server.machine.drop_connections()
    with pytest.raises(NodeUnreachable, match="connection was lost") as caught:
        await running
    assert "may go on" in str(caught.value.hint)
    (server.home / "go").touch()
    await until((server.home / "done").exists)


async def test_keepalive_notices_a_dead_link(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ssh, "KEEPALIVE_INTERVAL_S", 0.1)
    relay = Relay()
    async with relay.to(server.port) as port:
        server.known_hosts.write_text(server.known_hosts_line.replace(str(server.port), str(port), 1))
        node = await connect("strix1", replace(server.destination, port=port))
        marks = [str(server.home / name) for name in ("begun", "go", "done")]
        running = asyncio.create_task(node.run(Command("run", ("sh", "-c", WAITING, *marks))))
        await until((server.home / "begun").exists)
        relay.is_alive = False
        with pytest.raises(NodeUnreachable, match="connection was lost"):
            await running
        await node.close()
        (server.home / "go").touch()
