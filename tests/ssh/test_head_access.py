"""A head that wants a key or speaks TLS, reached through SSH with what it was started with."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from clusterctl.cluster.record import Record
from clusterctl.cluster.running_head import access_of, first_key, open_running_head, url_of
from clusterctl.errors import ClusterctlError
from clusterctl.llama.serving import Health
from clusterctl.model import Role
from clusterctl.remote.ssh import SshTransport
from clusterctl.reports import Access
from tests.ssh.certificates import make_certificate
from tests.ssh.server import Server


def head(port: int = 8080, *arguments: str, env: dict[str, str] | None = None) -> Record:
    argv = ("/opt/llama-server", *arguments)
    return Record("demo", "head", Role.HEAD, argv, "127.0.0.1", port, "b1", "me", "", "", env=env or {})


@asynccontextmanager
async def https(certificate: Path, key: Path) -> AsyncIterator[int]:
    """A server that says that it is healthy to whoever trusts it; yields its port."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
        await writer.drain()
        writer.close()

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def health(node: SshTransport, record: Record) -> Health:
    async with open_running_head(node, record) as api:
        return await api.health()


async def test_a_head_with_a_certificate_is_asked_by_https(node: SshTransport, server: Server) -> None:
    certificate, key = make_certificate(server.home, "head.example")
    async with https(certificate, key) as port:
        record = head(port, "--ssl-cert-file", str(certificate))
        assert await health(node, record) is Health.OK
        assert url_of(record) == f"https://127.0.0.1:{port}"
        assert await health(node, head(port)) is Health.NO_ANSWER


async def test_no_other_certificate_is_trusted(node: SshTransport, server: Server) -> None:
    certificate, key = make_certificate(server.home, "head.example")
    other, _ = make_certificate(server.home, "other.example")
    async with https(certificate, key) as port:
        assert await health(node, head(port, "--ssl-cert-file", str(other))) is Health.NO_ANSWER


async def test_of_a_chain_only_the_heads_own_certificate_is_trusted(node: SshTransport, server: Server) -> None:
    certificate, key = make_certificate(server.home, "head.example")
    other, other_key = make_certificate(server.home, "other.example")
    chain = server.home / "chain.pem"
    chain.write_text(certificate.read_text() + other.read_text())
    async with https(certificate, key) as port, https(other, other_key) as wrong_port:
        assert await health(node, head(port, "--ssl-cert-file", str(chain))) is Health.OK
        assert await health(node, head(wrong_port, "--ssl-cert-file", str(chain))) is Health.NO_ANSWER


@pytest.mark.parametrize("content", ["", "no certificate", "-----BEGIN CERTIFICATE-----\nAAAA\n"])
async def test_a_certificate_that_is_none_is_an_error(node: SshTransport, server: Server, content: str) -> None:
    file = server.home / "head.pem"
    file.write_text(content)
    with pytest.raises(ClusterctlError, match="certificate"):
        await health(node, head(8080, "--ssl-cert-file", str(file)))


async def test_a_key_comes_from_the_file_or_from_the_environment(node: SshTransport, server: Server) -> None:
    file = server.home / "keys"
    file.write_text("# for the team\n\nsk-first\nsk-second\n")
    assert await first_key(node, head(8080, "--api-key-file", str(file))) == "sk-first"
    assert await first_key(node, head(env={"LLAMA_API_KEY": "sk-one,sk-two"})) == "sk-one"
    assert await first_key(node, head()) is None


def test_what_clients_need_is_told_without_any_key() -> None:
    env = {"LLAMA_API_KEY": "sk-secret"}
    assert access_of(head()) == Access()
    assert access_of(head(env=env)) == Access(key_variable="LLAMA_API_KEY")
    by_file = head(8080, "--api-key-file", "/k", "--ssl-cert-file", "/c", env=env)
    assert access_of(by_file) == Access(key_file="/k", certificate="/c")


async def test_a_key_file_without_a_key_is_an_error(node: SshTransport, server: Server) -> None:
    file = server.home / "keys"
    file.write_text("# none yet\n")
    with pytest.raises(ClusterctlError, match="no API key can be read"):
        await first_key(node, head(8080, "--api-key-file", str(file)))
