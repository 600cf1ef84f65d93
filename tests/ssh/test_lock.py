"""The cluster's lock: one holder at a time, whatever happens to the others."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

from clusterctl.cluster.lock import LEASE_S, LockFailed, break_lock, holding
from clusterctl.errors import ClusterctlError, LockHeld
from clusterctl.remote import commands
from clusterctl.remote.ssh import SshTransport
from tests.ssh.server import Server
from tests.ssh.waiting import until

CLUSTER = "demo"


def state_of(server: Server) -> Path:
    return server.home / ".local/state/clusterctl" / CLUSTER


def age(path: Path, seconds: float) -> None:
    """Make a file look as old as that."""
    then = time.time() - seconds
    os.utime(path, (then, then))


async def acquire(node: SshTransport, token: str) -> int:
    """Try to take the lock; return the script's exit status."""
    return (await node.run(commands.lock("acquire", CLUSTER, token, lease_s=LEASE_S, owner="{}"))).exit_status


async def race(node: SshTransport, count: int) -> list[int]:
    """Let many try to take the lock at once; return their exit statuses."""
    return sorted(await asyncio.gather(*(acquire(node, f"token{number}") for number in range(count))))


async def test_the_lock_lives_as_long_as_the_body(node: SshTransport, server: Server) -> None:
    async with holding(node, CLUSTER, "up"):
        assert (state_of(server) / "lock").is_dir()
    assert not state_of(server).exists()


async def test_a_second_holder_learns_who_the_first_is_and_how_to_get_past(node: SshTransport) -> None:
    async with holding(node, CLUSTER, "up"):
        with pytest.raises(LockHeld, match=rf"\(pid {os.getpid()}\) runs `up` since ") as caught:
            async with holding(node, CLUSTER, "down"):
                pytest.fail("two hold the lock")
        assert "clusterctl unlock" in str(caught.value.hint)
        assert caught.value.exit_code == 8
    async with holding(node, CLUSTER, "down"):
        pass


async def test_a_lock_that_can_not_be_removed_is_no_lock_that_was_removed(
    node: SshTransport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with holding(node, CLUSTER, "up"):
        (tmp_path / "mv").write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / "mv").chmod(0o755)
        with monkeypatch.context() as patch:
            patch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
            with pytest.raises(LockFailed, match="can't be removed"):
                await break_lock(node, CLUSTER)
        assert await break_lock(node, CLUSTER) is not None


async def test_the_lock_of_one_cluster_does_not_hold_up_another(node: SshTransport) -> None:
    async with holding(node, CLUSTER, "up"), holding(node, "other", "up"):
        pass


async def test_of_many_at_once_exactly_one_gets_the_lock(node: SshTransport) -> None:
    for _ in range(5):
        assert await race(node, 6) == [0, 3, 3, 3, 3, 3]
        await break_lock(node, CLUSTER)


async def test_of_many_who_find_it_expired_exactly_one_gets_it(node: SshTransport, server: Server) -> None:
    for _ in range(5):
        assert await acquire(node, "dead") == 0
        age(state_of(server) / "lock/beat", LEASE_S + 1)
        assert await race(node, 6) == [0, 3, 3, 3, 3, 3]
        await break_lock(node, CLUSTER)


async def test_a_lock_within_its_lease_is_not_taken_over(node: SshTransport, server: Server) -> None:
    assert await acquire(node, "slow") == 0
    age(state_of(server) / "lock/beat", LEASE_S - 10)
    assert await acquire(node, "eager") == 3


async def test_a_lock_that_is_just_being_made_is_not_expired(node: SshTransport, server: Server) -> None:
    (state_of(server) / "lock").mkdir(parents=True)
    assert await acquire(node, "eager") == 3
    age(state_of(server) / "lock", LEASE_S + 1)
    assert await acquire(node, "patient") == 0


async def test_a_takeover_that_died_half_way_does_not_block_for_ever(node: SshTransport, server: Server) -> None:
    assert await acquire(node, "dead") == 0
    (state_of(server) / "takeover").mkdir()
    age(state_of(server) / "lock/beat", LEASE_S + 1)
    assert await acquire(node, "early") == 3
    age(state_of(server) / "takeover", LEASE_S + 1)
    assert await acquire(node, "late") == 0


async def test_only_the_holder_can_beat_and_release(node: SshTransport, server: Server) -> None:
    assert await acquire(node, "mine") == 0
    beat = state_of(server) / "lock/beat"
    age(beat, 30)
    old = beat.stat().st_mtime
    for action in ("beat", "release"):
        assert (await node.run(commands.lock(action, CLUSTER, "other", lease_s=LEASE_S))).exit_status != 0
    assert beat.stat().st_mtime == old
    assert (await node.run(commands.lock("beat", CLUSTER, "mine", lease_s=LEASE_S))).exit_status == 0
    assert beat.stat().st_mtime > old
    assert (await node.run(commands.lock("release", CLUSTER, "mine", lease_s=LEASE_S))).exit_status == 0
    assert not state_of(server).exists()


async def test_a_lock_can_be_broken_and_names_its_holder(node: SshTransport, server: Server) -> None:
    assert await break_lock(node, CLUSTER) is None
    async with holding(node, CLUSTER, "up"):
        holder = await break_lock(node, CLUSTER)
        assert holder is not None
        assert f"(pid {os.getpid()})" in holder
        assert not state_of(server).exists()
        assert await acquire(node, "next") == 0
    assert (state_of(server) / "lock/token").read_text() == "next"


async def test_a_lock_without_a_readable_name_can_be_broken(node: SshTransport, server: Server) -> None:
    assert await acquire(node, "nameless") == 0
    (state_of(server) / "lock/owner.json").write_text("[1, 2")
    assert await break_lock(node, CLUSTER) == "its holder left no name"


async def test_an_interrupt_in_the_body_releases_the_lock(node: SshTransport, server: Server) -> None:
    async def hold() -> None:
        async with holding(node, CLUSTER, "up"):
            await asyncio.Event().wait()

    running = asyncio.create_task(hold())
    await until((state_of(server) / "lock/beat").exists)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not state_of(server).exists()


async def test_an_interrupt_while_it_is_taken_leaves_no_lock(node: SshTransport, server: Server) -> None:
    async def hold() -> None:
        async with holding(node, CLUSTER, "up"):
            pytest.fail("it was interrupted before")

    running = asyncio.create_task(hold())
    await asyncio.sleep(0)  # the command is on its way, and being a change it is awaited
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not (state_of(server) / "lock").exists()


async def test_a_holder_whose_connection_broke_leaves_the_lock_to_its_lease(
    node: SshTransport, server: Server
) -> None:
    async with holding(node, CLUSTER, "up"):
        server.machine.drop_connections()
    assert (state_of(server) / "lock").is_dir()


async def test_a_lock_that_cannot_be_made_says_why(node: SshTransport, server: Server) -> None:
    (server.home / ".local").write_text("a file where a directory must be")
    with pytest.raises(ClusterctlError, match=r"could not take the cluster's lock: .*Not a directory") as caught:
        async with holding(node, CLUSTER, "up"):
            pytest.fail("there is no lock")
    assert not isinstance(caught.value, LockHeld)
