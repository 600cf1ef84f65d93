"""Links measured between this machine and a node over SSH, with the scripts that nodes really run."""

from __future__ import annotations

import socket
from dataclasses import replace

import pytest

from clusterctl.cluster.link import Link, measure_links
from clusterctl.remote.command import Command, Output
from clusterctl.remote.local import LocalTransport
from clusterctl.remote.ssh import SshTransport
from clusterctl.remote.transport import COMMAND_TIMEOUT_S, Transport
from clusterctl.remote.wrapped import WrappedTransport
from tests.ssh.server import HOST
from tests.ssh.test_tunnel import closed_port


class BehindFirewall(WrappedTransport):
    """A machine whose connections to a port all end at one where nothing listens, as at a firewall's reset."""

    async def run(self, command: Command, timeout_s: float = COMMAND_TIMEOUT_S) -> Output:
        *others, _port = command.arguments
        return await super().run(replace(command, arguments=(*others, str(closed_port()))), timeout_s)


@pytest.fixture
def head() -> Transport:
    return LocalTransport("head")


def listen(port: int) -> socket.socket:
    """Listen as a worker does that is started there."""
    worker = socket.socket()
    worker.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    worker.bind((HOST, port))
    worker.listen()
    return worker


async def measure(head: Transport, worker: Transport, port: int) -> Link:
    return (await measure_links(head, {"worker": worker}, {"worker": (HOST, port)}))["worker"]


async def test_a_link_is_measured_and_its_port_is_free_at_once(head: Transport, node: SshTransport) -> None:
    port = closed_port()
    link = await measure(head, node, port)
    listen(port).close()
    assert link.is_reachable
    assert link.fault == ""
    assert link.mbit_s
    assert link.mbit_s > 1


async def test_a_link_to_a_worker_of_the_heads_own_machine_is_measured(head: Transport) -> None:
    port = closed_port()
    assert (await measure(head, LocalTransport("worker"), port)).is_reachable
    listen(port).close()


async def test_what_a_firewall_refuses_is_not_reachable_and_its_port_is_free_at_once(
    head: Transport, node: SshTransport
) -> None:
    port = closed_port()
    link = await measure(BehindFirewall(head), node, port)
    listen(port).close()
    assert link == Link(False, fault="Connection refused, although the worker listened")


async def test_a_port_that_somebody_else_has_is_not_measured(head: Transport, node: SshTransport) -> None:
    port = closed_port()
    with listen(port):
        assert await measure(head, node, port) == Link(None, fault="bind: Address already in use")


async def test_a_worker_that_is_lost_is_not_measured(head: Transport, node: SshTransport) -> None:
    await node.close()
    link = await measure(head, node, closed_port())
    assert link.is_reachable is None
    assert "the SSH connection was lost" in link.fault
