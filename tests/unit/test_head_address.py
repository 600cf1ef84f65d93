"""Addresses of a head, IPv6 among them, and the keys that are sent to it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from clusterctl.cluster.head_api import base_url, head_api, host_and_port, reachable_address
from clusterctl.cluster.running_head import access_of, clients_url
from clusterctl.llama.serving import Health
from clusterctl.remote.local import LocalTransport
from tests.unit.cluster_samples import inventory, recipe
from tests.unit.sights import process


@asynccontextmanager
async def healthy(address: str, requests: list[bytes]) -> AsyncIterator[int]:
    """A server that says that it is healthy, and keeps what it was asked; yields its port."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, address, 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


@pytest.mark.parametrize(
    ("host", "url", "reached"),
    [
        ("127.0.0.1", "http://127.0.0.1:8080", "127.0.0.1:8080"),
        ("0.0.0.0", "http://0.0.0.0:8080", "127.0.0.1:8080"),
        ("head.lan", "http://head.lan:8080", "head.lan:8080"),
        ("::1", "http://[::1]:8080", "[::1]:8080"),
        ("::", "http://[::]:8080", "[::1]:8080"),
    ],
)
def test_an_address_stands_in_a_url(host: str, url: str, reached: str) -> None:
    assert base_url(host, 8080, has_tls=False) == url
    assert host_and_port(reachable_address(host), 8080) == reached


HEAD = "version: 1\ncluster: demo\nnodes:\n  - {{name: desk, role: head, {}}}\n"
SERVER = "version: 1\nname: demo\nmodel: {{path: /m.gguf}}\ncontext: 512\nserver: {{host: '{}'}}\n"


@pytest.mark.parametrize(
    ("node", "host", "url"),
    [
        ("host: desk.lan", "0.0.0.0", "http://desk.lan:8080"),
        ("host: desk.lan", "::", "http://desk.lan:8080"),
        ("connection: local", "0.0.0.0", "http://127.0.0.1:8080"),
        ("host: desk.lan", "127.0.0.1", "http://127.0.0.1:8080"),
        ("host: desk.lan", "192.168.1.30", "http://192.168.1.30:8080"),
    ],
)
def test_clients_are_given_an_address_that_they_can_reach(node: str, host: str, url: str) -> None:
    assert clients_url(inventory(HEAD.format(node)), recipe(SERVER.format(host)).server) == url


@pytest.mark.parametrize(
    ("address", "is_remote", "only_on"),
    [
        ("127.0.0.1", True, "head"),
        ("::1", True, "head"),
        ("localhost", True, "head"),
        ("127.0.0.1", False, None),
        ("0.0.0.0", True, None),
        ("head.lan", True, None),
    ],
)
def test_a_remote_head_on_loopback_answers_on_its_own_machine_alone(
    address: str, is_remote: bool, only_on: str | None
) -> None:
    record = replace(process("head").record, address=address)
    assert access_of(record, is_remote=is_remote).only_on == only_on


@pytest.mark.parametrize("host", ["::1", "::"])
async def test_a_head_is_reached_by_ipv6(host: str) -> None:
    with contextlib.suppress(OSError), socket.create_server(("::1", 0), family=socket.AF_INET6):
        async with healthy(host, []) as port, head_api(LocalTransport("head"), host, port) as api:
            assert await api.health() is Health.OK
        return
    pytest.skip("this machine has no IPv6")


@pytest.mark.parametrize("key", ["sk-plain", "schlüssel-🔑", "odd-\udcff"])
async def test_a_key_of_any_letters_is_sent_as_bytes(key: str) -> None:
    requests: list[bytes] = []
    head, host = LocalTransport("head"), "127.0.0.1"
    async with healthy(host, requests) as port, head_api(head, host, port, key) as api:
        assert await api.health() is Health.OK
    assert f"Bearer {key}".encode(errors="replace") in requests[0]
