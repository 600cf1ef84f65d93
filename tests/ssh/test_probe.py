"""A probe leaves nothing on a machine, at whatever moment it is ended."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from clusterctl.remote import commands
from clusterctl.remote.local import LocalTransport
from tests.ssh.waiting import until

PROBE = commands.probe("demo", "worker", bin_dir=None, ports=(), files=(), env={})


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
