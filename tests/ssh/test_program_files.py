"""Whether a program that runs is still the one that lies on the disk, however it was installed."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from clusterctl.cluster.observation import observe
from clusterctl.cluster.record import Record
from clusterctl.model import Role
from clusterctl.remote import commands
from clusterctl.remote.local import LocalTransport
from tests.ssh.server import end_all_of

CLUSTER, NODE = "demo", "box"


@pytest.fixture
async def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[LocalTransport]:
    """This machine with a home of its own; what is started there is ended."""
    monkeypatch.setenv("HOME", str(tmp_path))
    yield LocalTransport(NODE)
    end_all_of(tmp_path)


def install(root: Path, libraries: str) -> tuple[Path, Path]:
    """Put a program into `bin` and a library of its into another directory; return both."""
    program, library = root / "bin/worker", root / libraries / "libggml-base.so"
    program.parent.mkdir(parents=True)
    library.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(str(shutil.which("sleep")), program)
    library.write_text("built today")
    return program, library


async def start(box: LocalTransport, program: Path) -> None:
    record = Record(CLUSTER, NODE, Role.WORKER, (str(program), "1000"), "10.0.0.2", 1, "b1", "me", "now", "")
    command = commands.start(CLUSTER, NODE, record.argv, record=record.to_json(), env={})
    assert (await box.run(command)).stdout.startswith(b"running\n")


async def is_changed(box: LocalTransport) -> bool:
    process = (await observe(box, CLUSTER)).process(NODE)
    assert process is not None
    assert process.runs
    return process.program_changed


@pytest.mark.parametrize("libraries", ["bin", "lib", "lib64", "lib/x86_64-linux-gnu"])
async def test_a_library_that_was_replaced_is_told(box: LocalTransport, tmp_path: Path, libraries: str) -> None:
    program, library = install(tmp_path / "llama", libraries)
    await start(box, program)
    assert not await is_changed(box)
    library.write_text("built tomorrow")
    assert await is_changed(box)


async def test_a_library_behind_a_link_to_the_program_is_looked_at(box: LocalTransport, tmp_path: Path) -> None:
    program, library = install(tmp_path / "llama", "lib")
    link = tmp_path / "worker"
    link.symlink_to(program)
    await start(box, link)
    assert not await is_changed(box)
    library.write_text("built tomorrow")
    assert await is_changed(box)


async def test_a_link_that_leads_to_another_program_now_is_told(box: LocalTransport, tmp_path: Path) -> None:
    program, _ = install(tmp_path / "old", "lib")
    successor, _ = install(tmp_path / "new", "lib")
    successor.write_bytes(successor.read_bytes() + b"new")
    link = tmp_path / "worker"
    link.symlink_to(program)
    await start(box, link)
    link.unlink()
    link.symlink_to(successor)
    assert await is_changed(box)


async def test_a_program_behind_a_script_that_was_removed_is_told(box: LocalTransport, tmp_path: Path) -> None:
    program, _ = install(tmp_path / "llama", "lib")
    script = tmp_path / "wrapper"
    script.write_text(f'#!/bin/sh\nexec {program} "$@"\n')
    script.chmod(0o755)
    await start(box, script)
    assert not await is_changed(box)
    program.unlink()
    assert await is_changed(box)
