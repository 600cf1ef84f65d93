"""Servers and an operator's home for the tests; nobody's real keys or settings take part."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from clusterctl.remote.ssh import SshTransport, connect
from tests.ssh.server import Server, serving


@pytest.fixture(autouse=True)
def operator_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of the user who runs clusterctl: empty, with no agent."""
    home = tmp_path / "operator"
    (home / ".ssh").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    return home


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    async with serving(tmp_path / "node") as running:
        yield running


@pytest.fixture
async def node(server: Server) -> AsyncIterator[SshTransport]:
    """A connection to the server."""
    transport = await connect("strix1", server.destination)
    yield transport
    await transport.close()
