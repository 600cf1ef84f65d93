"""What happens on the node: the scripts of `install`, run by a real shell in a home of its own."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from clusterctl.cluster.installed import ROOT
from clusterctl.cluster.steps import Tell
from clusterctl.errors import InstallFailed
from clusterctl.install.archive import SOURCE_TREE, Package, pack
from clusterctl.install.needs import cmake_flags
from clusterctl.install.put import put
from clusterctl.install.site import Look, Site, look_at
from clusterctl.model import Build, Step
from clusterctl.remote import commands
from clusterctl.remote.command import Command
from clusterctl.remote.feeding import feed
from tests.unit.installing import make_source, make_tar, require_compiler, site

SHELLS = [shell for shell in ("sh", "dash", "bash", "busybox") if shutil.which(shell)]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of the node's user."""
    folder = tmp_path / "home of it's user"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.fixture
def root(home: Path) -> Path:
    """Where the builds lie."""
    return home / ROOT.removeprefix("~/")


@pytest.fixture
def package(tmp_path: Path) -> Package:
    """A package with one file, bigger than what a shell reads ahead."""
    path = make_tar(tmp_path / "package.tar.gz", {"llama-server": os.urandom(100_000)})
    return Package(path, path.stat().st_size, hashlib.sha256(path.read_bytes()).hexdigest())


@pytest.fixture
async def here(home: Path) -> tuple[Site, Look]:
    machine = site("cpu")
    return machine, await look_at(machine)


def silent(_step: Step) -> None:
    """Tell nobody."""


async def put_it(here: tuple[Site, Look], package: Package, name: str = "b1-aaaa", tell: Tell = silent) -> None:
    await put(*here, package, name, (), tell)


async def switch(here: tuple[Site, Look], current: str, previous: str) -> int:
    return (await here[0].transport.run(commands.install_switch(ROOT, current, previous))).exit_status


async def prune(here: tuple[Site, Look]) -> set[str]:
    output = await here[0].transport.run(commands.install_prune(ROOT))
    assert output.exit_status == 0
    return set(output.stdout.decode().split())


async def output_of(*argv: str) -> str:
    pipe = asyncio.subprocess.PIPE
    program = await asyncio.create_subprocess_exec(*argv, stdout=pipe, stderr=asyncio.subprocess.STDOUT)
    return (await program.communicate())[0].decode()


def names(root: Path) -> set[str]:
    return {entry.name for entry in root.iterdir()}


async def test_a_package_arrives_whole_and_says_how_far_it_is(
    here: tuple[Site, Look], root: Path, package: Package
) -> None:
    told: list[Step] = []
    await put_it(here, package, tell=told.append)
    assert names(root) == {"b1-aaaa"}
    assert (root / "b1-aaaa" / "llama-server").stat().st_size == 100_000
    assert told[-1].detail == "sent 0 of 0 MiB"


@pytest.mark.parametrize("shell", SHELLS)
async def test_no_shell_takes_the_input_for_its_own_text(shell: str, home: Path, package: Package) -> None:
    command = commands.install_put(
        ROOT, "b1", size_bytes=package.size_bytes, sha256=package.sha256, path=os.environ["PATH"], cmake_flags=()
    )
    assert await fed(shell, command, package.path.read_bytes()) == 0
    assert (home / ROOT[2:] / "b1" / "llama-server").is_file()


async def fed(shell: str, command: Command, content: bytes) -> int:
    async def chunks() -> AsyncIterator[bytes]:
        yield content

    argv = [shell, "sh", "-s"] if shell == "busybox" else [shell, "-s"]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*argv, stdin=pipe, stdout=pipe)
    assert process.stdin is not None
    assert process.stdout is not None
    await feed(command.text(is_fed=True), chunks(), process.stdin, process.stdout, lambda _: None)
    return await process.wait()


@pytest.mark.parametrize("sent", [100, -1])
async def test_what_arrives_damaged_or_cut_short_leaves_nothing(
    here: tuple[Site, Look], root: Path, package: Package, sent: int
) -> None:
    content = package.path.read_bytes()
    damaged = content[:sent] if sent > 0 else content[:-9] + bytes(9)
    package.path.write_bytes(damaged.ljust(len(content), b"\0"))
    with pytest.raises(InstallFailed, match="what arrived is not what was sent: sha256 is"):
        await put_it(here, package)
    assert names(root) == set()


async def test_an_archive_that_tar_refuses_leaves_nothing_and_says_why(
    here: tuple[Site, Look], root: Path, tmp_path: Path
) -> None:
    path = tmp_path / "no.tar.gz"
    path.write_bytes(b"no archive")
    sha256 = hashlib.sha256(b"no archive").hexdigest()
    with pytest.raises(InstallFailed, match="could not be unpacked") as caught:
        await put_it(here, Package(path, 10, sha256))
    assert "gzip" in " ".join(caught.value.log)
    assert names(root) == set()


async def test_an_upload_that_is_interrupted_leaves_nothing(
    here: tuple[Site, Look], root: Path, package: Package
) -> None:
    begun = asyncio.Event()
    longer = replace(package, size_bytes=2 * package.size_bytes, sha256="0" * 64)
    upload = asyncio.create_task(put_it(here, longer, tell=lambda _: begun.set()))
    await begun.wait()
    upload.cancel()
    with pytest.raises(asyncio.CancelledError):
        await upload
    assert names(root) == set()


async def test_links_lead_where_they_are_told_and_an_empty_name_removes_them(
    here: tuple[Site, Look], root: Path, package: Package
) -> None:
    for name in ("b1", "b2"):
        await put_it(here, package, name)
    assert await switch(here, "b1", "") == 0
    assert await switch(here, "b2", "b1") == 0
    assert {link: os.readlink(root / link) for link in ("current", "previous")} == {
        "current": "b2",
        "previous": "b1",
    }
    seen = await look_at(here[0])
    assert (seen.current, seen.previous) == ("b2", "b1")
    assert {"b1", "b2"} <= seen.builds
    assert await switch(here, "b1", "") == 0
    assert names(root) == {"b1", "b2", "current"}
    assert names(root / "b1") == {"llama-server"}


async def test_a_link_never_leads_to_what_is_not_there(
    here: tuple[Site, Look], root: Path, package: Package
) -> None:
    await put_it(here, package, "b1")
    await switch(here, "b1", "")
    assert await switch(here, "b2", "b1") != 0
    assert os.readlink(root / "current") == "b1"


async def test_all_is_removed_but_current_previous_and_what_runs(
    here: tuple[Site, Look], root: Path, package: Package
) -> None:
    for name in ("b1", "b2", "b3", "b4"):
        await put_it(here, package, name)
    program = root / "b1" / "llama-server"
    shutil.copy(shutil.which("sleep") or "", program)
    await switch(here, "b4", "b3")
    running = await asyncio.create_subprocess_exec(program, "60")
    try:
        assert await prune(here) == {"b2"}
        assert await prune(here) == set()
    finally:
        running.kill()
        await running.wait()
    if sys.platform == "linux":
        assert await prune(here) == {"b1"}
    assert names(root) == {"b3", "b4", "current", "previous"}


@pytest.fixture
def source(tmp_path: Path) -> Package:
    require_compiler()
    return pack([make_source(tmp_path / "source.tar.gz")], SOURCE_TREE, tmp_path / "package.tar.gz")


@pytest.fixture
def path_without_ninja(tmp_path: Path) -> str:
    """A PATH with every program of this machine but ninja."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for place in reversed(os.environ["PATH"].split(":")):
        for program in Path(place).glob("*"):
            (folder / program.name).unlink(missing_ok=True)
            (folder / program.name).symlink_to(program)
    (folder / "ninja").unlink(missing_ok=True)
    return str(folder)


async def test_source_is_compiled_by_make_where_ninja_is_missing(
    here: tuple[Site, Look], root: Path, source: Package, path_without_ninja: str
) -> None:
    machine, seen = here
    seen = replace(seen, system=replace(seen.system, path=path_without_ninja))
    told: list[Step] = []
    await put(machine, seen, source, "b1", cmake_flags(machine, seen, Build(11434)), told.append)
    assert {"llama-server", "ggml-rpc-server"} <= names(root / "b1")
    assert any("%]" in step.detail or "Built target" in step.detail for step in told)


async def test_source_is_compiled_into_programs_that_say_what_they_are(
    here: tuple[Site, Look], root: Path, source: Package
) -> None:
    told: list[Step] = []
    await put(*here, source, "b11434-aaaa", cmake_flags(*here, Build(11434)), told.append)
    assert names(root) == {"b11434-aaaa"}
    programs = root / "b11434-aaaa"
    (root / "moved").symlink_to(programs)
    assert (
        await output_of(str(root / "moved" / "llama-server"), "--version")
        == "version: 0.6.0-dev (build 11434, commit b11434)\n"
    )
    assert (programs / "ggml-rpc-server").is_file()
    assert any("Building" in step.detail or "%" in step.detail for step in told)


async def test_source_that_does_not_compile_leaves_nothing_and_shows_the_compilers_words(
    here: tuple[Site, Look], root: Path, source: Package
) -> None:
    with pytest.raises(InstallFailed, match="could not be compiled") as caught:
        await put(
            *here, source, "b1", (*cmake_flags(*here, Build(1)), "-DCMAKE_C_COMPILER=/no/such/compiler"), silent
        )
    assert "/no/such/compiler" in " ".join(caught.value.log)
    assert names(root) == set()


async def test_compiling_ends_with_the_one_who_waits_for_it(
    here: tuple[Site, Look], home: Path, root: Path, source: Package
) -> None:
    (home / "compile-slowly").touch()
    compiling = asyncio.Event()

    def tell(step: Step) -> None:
        if "Entering directory" in step.detail or "[" in step.detail:
            compiling.set()

    work = asyncio.create_task(put(*here, source, "b1", cmake_flags(*here, Build(11434)), tell))
    await compiling.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert names(root) == set()
    assert "wait.sh" not in await output_of("ps", "-eo", "args")
