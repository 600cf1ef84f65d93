"""A lock that changes hands while its first holder still believes in it, and clocks that are wrong."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from clusterctl.cluster.lock import FRESH_S, LEASE_S, Lease, break_lock, holding
from clusterctl.errors import LockHeld, NodeUnreachable
from clusterctl.remote import commands
from clusterctl.remote.command import Command, Effect
from clusterctl.remote.guarded import GuardedTransport
from clusterctl.remote.ssh import SshTransport, connect
from tests.ssh.server import Server

CLUSTER = "demo"


@asynccontextmanager
async def slept_through(node: SshTransport) -> AsyncIterator[tuple[Lease, GuardedTransport]]:
    """A holder that has not renewed its lock for long, as after a lid was closed; and its way to change things."""
    async with holding(node, CLUSTER, "up") as lease:
        lease.renewed_s -= FRESH_S + 1
        yield lease, GuardedTransport(node, lease.demand)


def beat_of(server: Server) -> Path:
    return server.home / ".local/state/clusterctl" / CLUSTER / "lock/beat"


def touching(file: Path) -> Command:
    return Command("run", ("touch", str(file)), Effect.CHANGE)


async def test_who_slept_and_still_holds_the_lock_goes_on(node: SshTransport, tmp_path: Path) -> None:
    async with slept_through(node) as (_, guarded):
        await guarded.run(touching(tmp_path / "changed"))
    assert (tmp_path / "changed").exists()


async def test_who_lost_the_lock_can_change_nothing_and_is_told_to_whom(
    node: SshTransport, tmp_path: Path
) -> None:
    async with slept_through(node) as (_, guarded):
        await break_lock(node, CLUSTER)
        async with holding(node, CLUSTER, "down"):
            with pytest.raises(LockHeld, match=rf"lost the cluster's lock: .*\(pid {os.getpid()}\) runs `down`"):
                await guarded.run(touching(tmp_path / "changed"))
            assert (await guarded.run(Command("run", ("echo", "seen")))).stdout == b"seen\n"
    assert not (tmp_path / "changed").exists()


async def test_who_lost_the_lock_never_changes_anything_again(node: SshTransport, tmp_path: Path) -> None:
    async with slept_through(node) as (lease, guarded):
        await break_lock(node, CLUSTER)
        for _ in range(2):
            with pytest.raises(LockHeld, match="somebody has removed it"):
                await guarded.run(touching(tmp_path / "changed"))
        with pytest.raises(LockHeld):
            await lease.demand()
    assert not (tmp_path / "changed").exists()


async def test_who_lost_the_way_to_the_lock_changes_nothing(
    node: SshTransport, server: Server, tmp_path: Path
) -> None:
    async with slept_through(node) as (_, guarded):
        server.machine.drop_connections()
        with pytest.raises(NodeUnreachable):
            await guarded.run(touching(tmp_path / "changed"))
    assert not (tmp_path / "changed").exists()


async def test_a_lock_that_was_just_renewed_is_not_asked_about(node: SshTransport) -> None:
    async with holding(node, CLUSTER, "up") as lease:
        await break_lock(node, CLUSTER)
        await lease.demand()


async def test_whose_connection_broke_finds_its_own_lock_again(node: SshTransport, server: Server) -> None:
    async with holding(node, CLUSTER, "up", "mine"):
        server.machine.drop_connections()
    again = await connect("strix1", server.destination)
    async with holding(again, CLUSTER, "up", "mine"):
        with pytest.raises(LockHeld):
            async with holding(again, CLUSTER, "up", "another's"):
                pytest.fail("two hold the lock")
    assert not beat_of(server).parents[1].exists()
    await again.close()


async def test_a_clock_that_was_set_back_does_not_block_for_as_long(node: SshTransport, server: Server) -> None:
    async with holding(node, CLUSTER, "up"):
        tomorrow = time.time() + 86400
        os.utime(beat_of(server), (tomorrow, tomorrow))
        with pytest.raises(LockHeld, match="last sign of life 0 s ago"):
            async with holding(node, CLUSTER, "down"):
                pytest.fail("the holder lives")
        assert abs(beat_of(server).stat().st_mtime - time.time()) < LEASE_S


@pytest.mark.parametrize("shift_s", [-86400, 86400])
async def test_a_file_server_may_have_another_clock_than_the_node(
    node: SshTransport, server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, shift_s: int
) -> None:
    shim = tmp_path / "bin" / "date"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nexec /bin/date -d "@$(($(/bin/date +%s) + {shift_s}))" "$@"\n')
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", f"{shim.parent}:{os.environ['PATH']}")
    said = await node.run(Command("run", ("date", "+%s")))
    assert abs(int(said.stdout) - time.time() - shift_s) < LEASE_S
    async with holding(node, CLUSTER, "up"):
        with pytest.raises(LockHeld, match=r"last sign of life \d s ago"):
            async with holding(node, CLUSTER, "down"):
                pytest.fail("the holder lives")
        old = time.time() - LEASE_S - 1
        os.utime(beat_of(server), (old, old))
        async with holding(node, CLUSTER, "down"):
            pass


async def test_asking_for_the_time_leaves_no_file(node: SshTransport, server: Server) -> None:
    async with holding(node, CLUSTER, "up"):
        lease = commands.lock("acquire", CLUSTER, "other", lease_s=LEASE_S, owner="{}")
        assert (await node.run(lease)).exit_status == 3
        assert sorted(file.name for file in beat_of(server).parents[1].iterdir()) == ["lock"]
    assert not beat_of(server).parents[1].exists()
