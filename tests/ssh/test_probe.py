"""A probe asks a machine all at once, and leaves nothing on it at whatever moment it is ended."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from clusterctl.cluster.facts import probe
from clusterctl.remote import commands
from clusterctl.remote.command import Command, Output
from clusterctl.remote.local import LocalTransport
from clusterctl.remote.transport import COMMAND_TIMEOUT_S
from clusterctl.remote.wrapped import WrappedTransport
from tests.ssh.waiting import until
from tests.unit.cluster_samples import inventory

PROBE = commands.probe("demo", "worker", bin_dir=None, ports=(), files=(), env={})


class Counting(WrappedTransport):
    """Counts what is asked of a node."""

    count = 0

    async def run(self, command: Command, timeout_s: float = COMMAND_TIMEOUT_S) -> Output:
        self.count += 1
        return await super().run(command, timeout_s)


@pytest.mark.parametrize("name", ["head", "w1"])
async def test_all_facts_of_a_node_take_one_round_trip(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    node = Counting(LocalTransport(name))
    facts = await probe(node, inventory(), inventory().node(name), (__file__, "/nowhere"), (50052,))
    assert node.count == 1
    assert (facts.files[__file__] or 0) > 0
    assert facts.files["/nowhere"] is None


def delay(tool: str, folder: Path, *, before: bool) -> Path:
    """Put a slow `tool` onto the PATH; return the file that says that it has begun, or has done its work."""
    said, real = folder / f"{tool}.said", shutil.which(tool)
    work, pause = f'{real} "$@"', f": >{said}; sleep 0.5"
    script = folder / "tools" / tool
    script.parent.mkdir(exist_ok=True)
    script.write_text(f"#!/bin/sh\n{pause}\n{work}\n" if before else f"#!/bin/sh\n{work}\n{pause}\n")
    script.chmod(0o755)
    return said


@pytest.mark.parametrize(("tool", "before"), [("mktemp", True), ("uname", True), ("rm", True), ("rm", False)])
async def test_a_probe_that_is_cancelled_removes_its_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str, before: bool
) -> None:
    said = delay(tool, tmp_path, before=before)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'tools'}:{os.environ['PATH']}")
    monkeypatch.setenv("TMPDIR", str(scratch))
    probing = asyncio.create_task(LocalTransport("box").run(PROBE))
    await until(said.exists)
    probing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await probing
    assert list(scratch.iterdir()) == []
