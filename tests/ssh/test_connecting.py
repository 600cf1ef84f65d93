"""Connecting: every way in which it can fail is told apart, with the reason and the next step."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import asyncssh
import pytest

from clusterctl.errors import NodeUnreachable
from clusterctl.remote import commands
from clusterctl.remote.ssh import connect
from clusterctl.remote.target import Destination
from tests.ssh.peers import answering
from tests.ssh.server import HOST, USER, Server, serving


async def refusal(destination: Destination) -> NodeUnreachable:
    """The error of a connection that must not come about."""
    with pytest.raises(NodeUnreachable) as caught:
        await connect("strix1", destination)
    assert caught.value.node == "strix1"
    assert caught.value.exit_code == 3
    assert caught.value.hint
    return caught.value


def lock_key(file: Path) -> None:
    """Put a passphrase on a key, as ssh-keygen does."""
    subprocess.run(("ssh-keygen", "-q", "-p", "-N", "secret", "-P", "", "-f", file), check=True)


@contextmanager
def agent_with(key: Path, socket_file: Path) -> Iterator[None]:
    """A real ssh-agent that holds a key, and listens on `socket_file`."""
    with subprocess.Popen(("ssh-agent", "-D", "-a", socket_file), stdout=subprocess.PIPE) as running:
        try:
            assert running.stdout is not None
            running.stdout.readline()  # it listens once it has said where
            variables = {**os.environ, "SSH_AUTH_SOCK": str(socket_file)}
            subprocess.run(("ssh-add", "-q", key), env=variables, check=True)
            yield
        finally:
            running.terminate()


async def test_a_known_host_lets_the_right_key_in(server: Server) -> None:
    transport = await connect("strix1", server.destination)
    output = await transport.run(commands.observe("demo", ()))
    await transport.close()
    assert str(server.home).encode() in output.stdout


async def test_an_unknown_host_key_is_named_with_the_way_to_trust_it(server: Server) -> None:
    server.known_hosts.write_text("")
    error = await refusal(server.destination)
    assert f"host key of {HOST} is not known" in error.message
    assert server.host_key.get_fingerprint() in error.message
    assert "ssh-ed25519" in error.message
    assert error.hint is not None
    assert f"ssh-keyscan -p {server.port} {HOST} >> {server.known_hosts}" in error.hint


async def test_a_known_hosts_file_of_ones_own_may_be_missing(server: Server, operator_home: Path) -> None:
    error = await refusal(replace(server.destination, known_hosts=None))
    assert "is not known" in error.message
    assert "~/.ssh/known_hosts" in str(error.hint)


async def test_a_named_known_hosts_file_that_is_missing_is_named(server: Server, tmp_path: Path) -> None:
    missing = tmp_path / "nobody" / "known_hosts"
    error = await refusal(replace(server.destination, known_hosts=str(missing)))
    assert str(missing) in error.message
    assert "known_hosts" in str(error.hint)


async def test_another_host_key_than_the_known_one_is_an_alarm(server: Server) -> None:
    other = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode()
    server.known_hosts.write_text(f"[{HOST}]:{server.port} {other}")
    error = await refusal(server.destination)
    assert "has CHANGED" in error.message
    assert server.host_key.get_fingerprint() in error.message
    assert f"ssh-keygen -R '[{HOST}]:{server.port}'" in str(error.hint)


async def test_a_host_key_is_not_taken_from_another_port_of_the_host(server: Server) -> None:
    line = server.known_hosts_line.replace(f":{server.port} ", f":{server.port + 1} ")
    server.known_hosts.write_text(line)
    assert "is not known" in (await refusal(server.destination)).message


async def test_a_key_that_the_node_does_not_accept_is_told_as_that(server: Server, tmp_path: Path) -> None:
    stranger = tmp_path / "stranger"
    asyncssh.generate_private_key("ssh-ed25519").write_private_key(stranger)
    error = await refusal(replace(server.destination, identity_file=str(stranger)))
    assert "ermission denied" in error.message
    assert "ssh-copy-id" in str(error.hint)
    by_hand = f"`ssh -p {server.port} -l {server.destination.user} -i {stranger} -o UserKnownHostsFile="
    assert by_hand in str(error.hint)
    assert f"can't connect to {HOST}:{server.port}: " in error.message


async def test_without_any_key_permission_is_denied(server: Server, operator_home: Path) -> None:
    error = await refusal(replace(server.destination, identity_file=None))
    assert "ermission denied" in error.message


async def test_a_missing_identity_file_is_named(server: Server, tmp_path: Path) -> None:
    error = await refusal(replace(server.destination, identity_file=str(tmp_path / "gone")))
    assert str(tmp_path / "gone") in error.message
    assert "ssh.identity_file" in str(error.hint)


async def test_a_key_with_a_passphrase_and_no_agent_is_told_to_use_one(server: Server) -> None:
    lock_key(server.identity_file)
    error = await refusal(server.destination)
    assert "ermission denied" in error.message
    assert "an agent" in str(error.hint)


async def test_a_key_with_a_passphrase_is_taken_from_the_agent(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with agent_with(server.identity_file, tmp_path / "agent"):
        lock_key(server.identity_file)
        monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
        transport = await connect("strix1", server.destination)
        await transport.close()


async def test_a_closed_port_is_a_refused_connection() -> None:
    with socket.socket() as closed:
        closed.bind((HOST, 0))
        port = closed.getsockname()[1]
    error = await refusal(Destination(HOST, USER, port))
    assert "Connection refused" in error.message


async def test_a_host_without_an_address_is_named() -> None:
    error = await refusal(Destination("no-such-host.invalid", USER))
    assert "no-such-host.invalid" in error.message


async def test_a_machine_that_says_nothing_is_given_up_after_the_timeout() -> None:
    async with answering(lambda _: None) as port:
        error = await refusal(Destination(HOST, USER, port, connect_timeout_s=0.2))
    assert "no answer within 0.2 s" in error.message
    assert "connect_timeout" in str(error.hint)


async def test_a_server_that_hangs_up_at_once_is_not_called_silent() -> None:
    async with answering(lambda writer: writer.close()) as port:
        error = await refusal(Destination(HOST, USER, port))
    assert "no answer" not in error.message


async def test_a_port_that_speaks_something_else_is_no_ssh_server() -> None:
    async with answering(lambda writer: writer.write(b"+PONG\r\n" * 2000)) as port:
        error = await refusal(Destination(HOST, USER, port))
    assert "no answer" not in error.message


async def test_a_damaged_ssh_config_is_told_and_not_a_crash(server: Server, operator_home: Path) -> None:
    (operator_home / ".ssh" / "config").write_text("Host *\n  Port many\n")
    error = await refusal(replace(server.destination, port=None))
    assert "many" in error.message or "Port" in error.message


async def test_the_ssh_config_of_the_user_applies(server: Server, operator_home: Path) -> None:
    (operator_home / ".ssh" / "config").write_text(server.config_entry("attic"))
    (operator_home / ".ssh" / "known_hosts").write_text(server.known_hosts_line)
    transport = await connect("strix1", Destination("attic"))
    (connection,) = server.machine.connected
    assert connection.get_extra_info("username") == USER
    await transport.close()


async def test_the_inventory_wins_over_the_ssh_config(server: Server, operator_home: Path) -> None:
    config = f"Host {HOST}\n  Port 1\n  User nobody\n  IdentityFile /gone\n"
    (operator_home / ".ssh" / "config").write_text(config)
    transport = await connect("strix1", server.destination)
    (connection,) = server.machine.connected
    assert connection.get_extra_info("username") == USER
    await transport.close()


async def test_a_jump_host_of_the_ssh_config_is_used(server: Server, operator_home: Path, tmp_path: Path) -> None:
    async with serving(tmp_path / "gate") as gate:
        config = gate.config_entry("gate") + server.config_entry("attic", "ProxyJump gate")
        (operator_home / ".ssh" / "config").write_text(config)
        (operator_home / ".ssh" / "known_hosts").write_text(server.known_hosts_line + gate.known_hosts_line)
        transport = await connect("strix1", Destination("attic"))
        assert len(gate.machine.connected) == 1
        assert (await transport.run(commands.observe("demo", ()))).exit_status == 0
        await transport.close()


async def test_an_unknown_key_of_the_jump_host_is_refused_too(
    server: Server, operator_home: Path, tmp_path: Path
) -> None:
    async with serving(tmp_path / "gate") as gate:
        config = gate.config_entry("gate") + server.config_entry("attic", "ProxyJump gate")
        (operator_home / ".ssh" / "config").write_text(config)
        (operator_home / ".ssh" / "known_hosts").write_text(server.known_hosts_line)
        error = await refusal(Destination("attic"))
    assert "ost key" in error.message
