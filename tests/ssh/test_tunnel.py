"""Connections from the node's side of the network, and the local port that leads there."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from clusterctl.cluster.rpc_probe import say_hello
from clusterctl.errors import NodeUnreachable
from clusterctl.remote.ssh import SshTransport
from clusterctl.remote.tunnel import tunnel
from tests.ssh.server import HOST, Server
from tests.ssh.waiting import until

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send everything back, then close."""
    while chunk := await reader.read(65536):
        writer.write(chunk)
        await writer.drain()
    writer.close()


@asynccontextmanager
async def listening(handler: Handler) -> AsyncIterator[int]:
    """A TCP server that only the node is asked to connect to; yields its port."""
    acceptor = await asyncio.start_server(handler, HOST, 0)
    try:
        yield acceptor.sockets[0].getsockname()[1]
    finally:
        acceptor.close()


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


async def test_bytes_go_both_ways_until_one_side_has_said_all(node: SshTransport) -> None:
    sent = bytes(range(256)) * 8192
    async with listening(echo) as far, tunnel(node, HOST, far) as near:
        reader, writer = await asyncio.open_connection(HOST, near)
        writer.write(sent)
        writer.write_eof()
        assert await reader.read() == sent
        writer.close()


async def test_several_clients_do_not_mix(node: SshTransport) -> None:
    async def ask(port: int, text: bytes) -> bytes:
        reader, writer = await asyncio.open_connection(HOST, port)
        writer.write(text)
        writer.write_eof()
        answer = await reader.read()
        writer.close()
        return answer

    texts = [bytes([number]) * 1000 for number in range(8)]
    async with listening(echo) as far, tunnel(node, HOST, far) as near:
        assert await asyncio.gather(*(ask(near, text) for text in texts)) == texts


async def test_a_far_end_that_closes_closes_the_near_end(node: SshTransport) -> None:
    async def greet(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"bye")
        writer.close()

    async with listening(greet) as far, tunnel(node, HOST, far) as near:
        reader, writer = await asyncio.open_connection(HOST, near)
        assert await reader.read() == b"bye"
        writer.close()


async def test_a_near_end_that_breaks_off_closes_the_far_end(node: SshTransport) -> None:
    left = asyncio.Event()

    async def wait_for_the_end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        await reader.read()
        left.set()
        writer.close()

    async with listening(wait_for_the_end) as far, tunnel(node, HOST, far) as near:
        reader, writer = await asyncio.open_connection(HOST, near)
        assert await reader.readexactly(5) == b"hello"
        writer.transport.abort()
        async with asyncio.timeout(5):
            await left.wait()


async def test_a_tunnel_that_ends_takes_open_connections_along(node: SshTransport) -> None:
    left = asyncio.Event()

    async def wait_for_the_end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        await reader.read()
        left.set()
        writer.close()

    async with listening(wait_for_the_end) as far:
        async with tunnel(node, HOST, far) as near:
            reader, writer = await asyncio.open_connection(HOST, near)
            assert await reader.readexactly(5) == b"hello"
        async with asyncio.timeout(5):
            assert await reader.read() == b""
            await left.wait()
        writer.close()


async def test_a_far_end_that_refuses_shows_as_a_closed_connection(node: SshTransport) -> None:
    async with tunnel(node, HOST, closed_port()) as near:
        reader, writer = await asyncio.open_connection(HOST, near)
        assert await reader.read() == b""
        writer.close()


async def test_a_connection_that_drops_under_a_tunnel_closes_the_near_end(
    node: SshTransport, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    async with listening(echo) as far, tunnel(node, HOST, far) as near:
        reader, writer = await asyncio.open_connection(HOST, near)
        writer.write(b"hello")
        assert await reader.readexactly(5) == b"hello"
        server.machine.drop_connections()
        async with asyncio.timeout(5):
            assert await reader.read() == b""
        writer.close()
    assert [record for record in caplog.records if record.name == "asyncio"] == []


async def test_a_taken_local_port_is_an_os_error(node: SshTransport) -> None:
    async with listening(echo) as taken:
        with pytest.raises(OSError, match="in use"):
            async with tunnel(node, HOST, taken, taken):
                pytest.fail("the port is taken")


async def test_a_closed_port_of_the_node_is_a_refused_connection(node: SshTransport) -> None:
    with pytest.raises(ConnectionRefusedError):
        await node.open_connection(HOST, closed_port(), 5)


async def test_an_address_that_does_not_answer_is_a_timeout(node: SshTransport) -> None:
    with socket.socket() as full:
        # Once its queue of one is full, Linux answers no further connection to a listening socket.
        full.bind((HOST, 0))
        full.listen(0)
        waiting = [socket.socket() for _ in range(4)]
        for client in waiting:
            client.setblocking(False)
            client.connect_ex(full.getsockname())
        with pytest.raises(TimeoutError):
            await node.open_connection(HOST, full.getsockname()[1], 0.2)
        for client in waiting:
            client.close()


async def test_a_read_on_a_dropped_connection_is_an_os_error(node: SshTransport, server: Server) -> None:
    async with listening(echo) as far:
        reader, writer = await node.open_connection(HOST, far, 5)
        server.machine.drop_connections()
        with pytest.raises(OSError, match=r"."):
            await reader.read(1)
        writer.close()


async def test_no_connection_opens_once_the_way_to_the_node_is_gone(node: SshTransport, server: Server) -> None:
    server.machine.drop_connections()
    await until(lambda: not server.machine.connected)
    with pytest.raises(NodeUnreachable):
        await node.open_connection(HOST, closed_port(), 5)


async def test_a_node_that_lets_no_connection_through_is_told_before_anybody_connects(
    node: SshTransport, server: Server
) -> None:
    server.machine.forwards = False
    with pytest.raises(NodeUnreachable, match="sshd forbids connections through it") as caught:
        async with tunnel(node, HOST, closed_port()):
            pytest.fail("it leads nowhere")
    assert "AllowTcpForwarding" in str(caught.value.hint)


async def test_a_head_that_lets_no_connection_through_is_not_the_workers_fault(
    node: SshTransport, server: Server
) -> None:
    server.machine.forwards = False
    with pytest.raises(NodeUnreachable, match="sshd forbids") as caught:
        await say_hello(node, "w1", HOST, closed_port())
    assert caught.value.node == "strix1"
