"""What a Linux machine tells of its sockets: by ss, or by the kernel's own list where ss is missing or fails."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from clusterctl.cluster.observation import observe
from clusterctl.remote.local import LocalTransport
from clusterctl.remote.sockets import Socket

HEADING = "State  Recv-Q Send-Q Local Address:Port Peer Address:Port"
TOOLS = {
    "as it is": "",
    "missing": "exit 127",
    "without its kernel module": 'echo "Cannot open netlink socket: Protocol not supported" >&2; exit 255',
    "not allowed to look": f'echo "{HEADING}"',
    "broken off": f'echo "{HEADING}"; echo "LISTEN 0 128 10.9.9.9:22 0.0.0.0:*"; exit 1',
}


@pytest.fixture(params=TOOLS)
def machine(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalTransport:
    """This machine, with its `ss` or with one that fails in some way."""
    if text := TOOLS[request.param]:
        tool = tmp_path / "ss"
        tool.write_text(f"#!/bin/sh\n{text}\n")
        tool.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return LocalTransport("box")


@pytest.mark.parametrize(
    ("family", "host", "seen"),
    [
        (socket.AF_INET, "127.0.0.1", "127.0.0.1"),
        (socket.AF_INET6, "::1", "::1"),
        (socket.AF_INET, "0.0.0.0", "0.0.0.0"),
        (socket.AF_INET6, "::", "::"),
    ],
)
async def test_a_listener_its_process_and_its_client_are_seen(
    machine: LocalTransport, family: socket.AddressFamily, host: str, seen: str
) -> None:
    with socket.socket(family) as server:
        server.bind((host, 0))
        server.listen()
        port = server.getsockname()[1]
        loopback = {"0.0.0.0": "127.0.0.1", "::": "127.0.0.1"}.get(host, host)
        with socket.create_connection((loopback, port)) as client:
            peer = f"{loopback}:{client.getsockname()[1]}"
            found = await observe(machine, "demo", (port,))
            assert found.listening(port) == (Socket(seen, port),)
            assert found.attached(port) == (Socket(loopback, port, peer),)
            assert [(holder.port, holder.pid) for holder in found.holders[port]] == [(port, os.getpid())]


async def test_a_port_on_which_nobody_listens_has_no_holder(machine: LocalTransport) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
    found = await observe(machine, "demo", (port,))
    assert (found.listening(port), found.holders[port]) == ((), ())
    assert found.sockets is not None
