"""Removing what workers have cached, also when two of them on one machine are told to at once."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from clusterctl.cluster.stopping import purge_cache_of
from clusterctl.model import Step
from clusterctl.remote.ssh import SshTransport
from tests.ssh.server import Server

CLUSTER = "demo"
AT_ONCE = 4


def ignore(step: Step) -> None:
    """Nobody looks at the steps."""


@pytest.fixture
def cache(server: Server) -> Path:
    """A cache of many files, whose removal takes a while."""
    cache = server.home / ".cache/clusterctl" / CLUSTER
    for number in range(2000):
        folder = cache / "rpc" / str(number % 40)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / str(number)).write_text("weights")
    return cache


async def test_many_may_remove_one_cache_at_once(node: SshTransport, cache: Path) -> None:
    await asyncio.gather(*(purge_cache_of(node, CLUSTER, ignore) for _ in range(AT_ONCE)))
    assert await purge_cache_of(node, CLUSTER, ignore) is False
