"""What `down` ends, what it leaves alone, and what it takes for proof that nothing is left."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from clusterctl.cluster.clearing import Cleared, clear
from clusterctl.cluster.membership import Member, Membership
from clusterctl.cluster.observation import observe
from clusterctl.cluster.proof import prove_gone
from clusterctl.cluster.record import Process, ProcessState, Record
from clusterctl.cluster.session import Session
from clusterctl.config.loading import parse_inventory
from clusterctl.errors import Degraded, NodeUnreachable
from clusterctl.model import Role, Step
from clusterctl.remote import commands
from clusterctl.remote.ssh import SshTransport
from tests.ssh.server import Server

INVENTORY = parse_inventory(
    """
version: 1
cluster: demo
network: 10.10.0.0/24
nodes:
  - {name: head, role: head}
  - {name: w1, role: worker}
""",
    "test.yaml",
    {},
)
LOST = NodeUnreachable("no answer")


def silent(_step: Step) -> None:
    """Tell nobody."""


def record_of(node: str, address: str = "10.10.0.21", port: int = 50052) -> Record:
    return Record("demo", node, Role.WORKER, ("sleep", "1000"), address, port, "b1", "me", "now", "digest")


async def start_worker(transport: SshTransport) -> psutil.Process:
    record = record_of("w1")
    output = await transport.run(commands.start("demo", "w1", record.argv, record=record.to_json(), env={}))
    return psutil.Process(int(output.stdout.split()[1]))


async def test_the_record_of_a_lost_machine_with_the_same_home_is_left_alone(
    node: SshTransport, server: Server
) -> None:
    await start_worker(node)
    directory = server.home / ".local/state/clusterctl/demo/nodes/w1"
    pid, start, _ = (directory / "process").read_text().splitlines()
    (directory / "process").write_text(f"{pid}\n{start}\nanother-machine\n")
    seen = {"head": await observe(node, "demo")}
    cleared = await clear(INVENTORY, Session({"head": node}, {"w1": LOST}, dry=False), seen, silent)
    assert "could not be reached" in cleared.left["w1"]
    assert not cleared.changed
    assert (directory / "process").exists()


async def test_a_damaged_record_of_a_lost_machine_is_left_alone_too(node: SshTransport, server: Server) -> None:
    await start_worker(node)
    directory = server.home / ".local/state/clusterctl/demo/nodes/w1"
    (directory / "record.json").write_text("{")
    seen = {"head": await observe(node, "demo")}
    cleared = await clear(INVENTORY, Session({"head": node}, {"w1": LOST}, dry=False), seen, silent)
    assert not cleared.changed
    assert directory.exists()


async def test_a_worker_whose_connections_are_not_known_stays_with_its_head(node: SshTransport) -> None:
    program = await start_worker(node)
    seen = {"w1": replace(await observe(node, "demo"), sockets=None)}
    opened = Session({"w1": node}, {"head": LOST}, dry=False)
    cleared = await clear(INVENTORY, opened, seen, silent)
    assert "use --force" in cleared.left["w1"]
    assert program.is_running()


@asynccontextmanager
async def listening_at(address: str) -> AsyncIterator[int]:
    """A process that no record names, which listens on a free port."""
    async with await asyncio.start_server(lambda _reader, _writer: None, address, 0) as holder:
        yield holder.sockets[0].getsockname()[1]


def gone_from(address: str, port: int) -> Process:
    return Process(record_of("w1", address, port), ProcessState.RUNNING, 99999999, None)


@pytest.mark.parametrize(
    ("recorded", "listening"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("localhost", "127.0.0.1"),
        ("head.lan", "127.0.0.1"),
        ("0.0.0.0", "127.0.0.1"),
        ("::", "127.0.0.1"),
        ("127.0.0.1", "0.0.0.0"),
    ],
)
async def test_a_port_is_open_whoever_listens_there(node: SshTransport, recorded: str, listening: str) -> None:
    async with listening_at(listening) as port:
        with pytest.raises(Degraded, match=rf"port {port} is still open, held by .*\(pid {os.getpid()}\)"):
            await prove_gone(node, "demo", "w1", gone_from(recorded, port), silent)


async def test_a_member_without_a_record_is_proven_by_its_port_again_and_again(node: SshTransport) -> None:
    async with listening_at("127.0.0.1") as port:
        member = Member("w1", Role.WORKER, None, "127.0.0.1", port)
        text = Membership((member,), "http://127.0.0.1:8080", "demo").to_json()
        seen = {"head": replace(await observe(node, "demo"), membership=text), "w1": await observe(node, "demo")}
        opened = Session({"head": node, "w1": node}, {}, dry=False)
        for _ in range(2):
            cleared = await clear(INVENTORY, opened, seen, silent)
            assert f"port {port} is still open, held by" in cleared.left["w1"]
            assert "`clusterctl down --node w1 --force`" in str(cleared.causes["w1"].hint)
        assert (await clear(INVENTORY, opened, seen, silent, only={"head"})).left == {}
        untold = {**seen, "w1": replace(seen["w1"], damaged=("w1",))}
        assert "still open" in (await clear(INVENTORY, opened, untold, silent)).left["w1"]
    assert await clear(INVENTORY, opened, seen, silent) == Cleared(changed=False, left={})


async def test_a_port_is_closed_although_somebody_listens_at_another_address(node: SshTransport) -> None:
    async with listening_at("127.0.0.1") as port:
        await prove_gone(node, "demo", "w1", gone_from("127.0.0.2", port), silent)


async def test_who_holds_a_port_is_told_where_find_knows_no_links(
    node: SshTransport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = tmp_path / "find"
    find.write_text("#!/bin/sh\necho 'find: unrecognized: -lname' >&2\nexit 1\n")
    find.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    async with listening_at("127.0.0.1") as port:
        seen = await observe(node, "demo", (port,))
    assert [holder.pid for holder in seen.holders[port]] == [os.getpid()]
