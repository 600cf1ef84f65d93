"""Many nodes at once, and nodes that fail beside others that do not."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from clusterctl.errors import NodeUnreachable
from clusterctl.remote import commands
from clusterctl.remote.fanout import on_all
from clusterctl.remote.local import LocalTransport
from clusterctl.remote.target import MAX_LOGINS, Destination, open_all
from tests.ssh.peers import answering
from tests.ssh.server import HOST, USER, Server, serving
from tests.ssh.waiting import until


async def test_forty_nodes_are_all_reached_but_never_logged_in_to_at_once(server: Server) -> None:
    targets = {f"node{number}": server.destination for number in range(40)}
    async with open_all(targets) as opened:
        assert list(opened.done) == list(targets)
        outputs = await on_all(opened.done, lambda _, node: node.run(commands.observe("demo", ())))
        assert {output.exit_status for output in outputs.all_done().values()} == {0}
        assert len(server.machine.connected) == 40
    assert 1 < server.machine.most_logging_in <= MAX_LOGINS
    await until(lambda: not server.machine.connected)


async def test_a_node_that_fails_is_kept_with_its_error_beside_those_that_answer(
    server: Server, tmp_path: Path
) -> None:
    async with serving(tmp_path / "other") as other:
        stranger = replace(other.destination, known_hosts=str(server.known_hosts))
        async with open_all({"here": None, "good": server.destination, "bad": stranger}) as opened:
            assert isinstance(opened.done["here"], LocalTransport)
            assert list(opened.done) == ["here", "good"]
            assert list(opened.failed) == ["bad"]
            assert "is not known" in str(opened.failed["bad"])
        with pytest.raises(NodeUnreachable, match="bad: host key"):
            opened.all_done()


async def test_connections_are_closed_when_the_body_fails(server: Server) -> None:
    with pytest.raises(LookupError):
        async with open_all({"good": server.destination}):
            raise LookupError
    await until(lambda: not server.machine.connected)


async def test_an_interrupt_while_others_still_connect_closes_what_is_open(server: Server) -> None:
    async def connect_all(port: int) -> None:
        slow = Destination(HOST, USER, port, connect_timeout_s=60)
        async with open_all({"good": server.destination, "slow": slow}):
            pytest.fail("one node never answers")

    async with answering(lambda _: None) as port:
        connecting = asyncio.create_task(connect_all(port))
        await until(lambda: len(server.machine.connected) == 1)
        connecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connecting
        await until(lambda: not server.machine.connected)
