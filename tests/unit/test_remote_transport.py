"""The rules of every transport, on this machine: timeouts, cancelling, the dry run, and many at once."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

import psutil
import pytest

from clusterctl.errors import ClusterctlError, CommandTimeout, NodesFailed, NodeUnreachable
from clusterctl.remote import commands
from clusterctl.remote.command import Command, Effect
from clusterctl.remote.dry import DryTransport
from clusterctl.remote.fanout import on_all
from clusterctl.remote.local import LocalTransport
from clusterctl.remote.target import open_all
from tests.ssh.waiting import until


@pytest.fixture
def here() -> LocalTransport:
    return LocalTransport("here")


async def test_a_command_runs_on_this_machine(here: LocalTransport, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"\0\1\2\3")
    output = await here.run(commands.read(str(tmp_path / "file"), 1, 2))
    assert (output.exit_status, output.stdout, output.recorded) == (0, b"\1\2", False)


async def test_a_command_that_takes_too_long_is_a_timeout(here: LocalTransport) -> None:
    with pytest.raises(CommandTimeout, match=r"here: `run` did not finish within 0\.1 s"):
        await here.run(Command("run", ("sleep", "20")), timeout_s=0.1)


async def test_a_cancelled_reading_command_leaves_no_process(here: LocalTransport, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "begun")
    argv = ("sh", "-c", 'echo $$ >"$0"; exec sleep 1000', str(tmp_path / "begun"))
    running = asyncio.create_task(here.run(Command("run", argv)))
    program = psutil.Process(int(await asyncio.to_thread((tmp_path / "begun").read_text)))
    running.cancel()
    async with asyncio.timeout(5):
        with pytest.raises(asyncio.CancelledError):
            await running
    await until(lambda: not program.is_running() or program.status() == psutil.STATUS_ZOMBIE)


async def test_a_cancelled_probe_leaves_no_directory_behind(
    here: LocalTransport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, begun, work = (tmp_path / name for name in ("llama-server", "begun", "work"))
    work.mkdir()
    monkeypatch.setenv("TMPDIR", str(work))
    os.mkfifo(begun)
    program.write_text(f'#!/bin/sh\necho >"{begun}"\nexec sleep 1000\n')
    program.chmod(0o755)
    command = commands.probe("demo", "head", bin_dir=str(tmp_path), ports=(), files=(), env={})
    running = asyncio.create_task(here.run(command))
    await asyncio.to_thread(begun.read_text)
    assert os.listdir(work)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert os.listdir(work) == []


async def test_a_cancelled_reading_command_that_will_not_end_is_killed(
    here: LocalTransport, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "begun")
    stubborn = 'trap "" TERM; echo $$ >"$0"; while :; do sleep 1000; done'
    running = asyncio.create_task(here.run(Command("run", ("sh", "-c", stubborn, str(tmp_path / "begun")))))
    program = psutil.Process(int(await asyncio.to_thread((tmp_path / "begun").read_text)))
    running.cancel()
    async with asyncio.timeout(5):
        with pytest.raises(asyncio.CancelledError):
            await running
    await until(lambda: not program.is_running() or program.status() == psutil.STATUS_ZOMBIE)


async def test_a_machine_that_can_not_start_a_command_is_told_as_a_nodes_error(
    here: LocalTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(
        NodeUnreachable, match="here: `sh` can't be started on this machine: No such file"
    ) as caught:
        await here.run(commands.observe("demo", ()))
    assert "PATH" in str(caught.value.hint)


async def test_a_cancelled_changing_command_is_awaited(here: LocalTransport, tmp_path: Path) -> None:
    begun, go, done = (tmp_path / name for name in ("begun", "go", "done"))
    os.mkfifo(begun)
    os.mkfifo(go)
    script = 'echo >"$0"; read -r _ <"$1"; echo >"$2"'
    argv = ("sh", "-c", script, str(begun), str(go), str(done))
    running = asyncio.create_task(here.run(Command("run", argv, Effect.CHANGE)))
    await asyncio.to_thread(begun.read_text)
    running.cancel()
    await asyncio.sleep(0)
    assert not running.done()
    await asyncio.to_thread(go.write_text, "\n")
    with pytest.raises(asyncio.CancelledError):
        await running
    assert done.exists()


async def test_ctrl_c_in_the_terminal_does_not_reach_the_commands(here: LocalTransport) -> None:
    output = await here.run(Command("run", ("sh", "-c", "ps -o sid= -p $$")))
    assert int(output.stdout) != os.getsid(0)


async def test_a_port_of_this_machine_can_be_reached_and_refuses_when_closed(here: LocalTransport) -> None:
    acceptor = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    async with acceptor:
        reader, writer = await here.open_connection("127.0.0.1", acceptor.sockets[0].getsockname()[1], 5)
        assert await reader.read(1) == b""
        writer.close()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        closed = probe.getsockname()[1]
    with pytest.raises(ConnectionRefusedError):
        await here.open_connection("127.0.0.1", closed, 5)


async def test_a_dry_run_reads_but_changes_nothing(here: LocalTransport, tmp_path: Path) -> None:
    dry = DryTransport(here)
    (tmp_path / "file").write_text("text")
    changing = Command("run", ("touch", str(tmp_path / "changed")), Effect.CHANGE)
    assert (await dry.run(commands.read(str(tmp_path / "file"), 0, 9))).stdout == b"text"
    output = await dry.run(changing)
    assert (output.exit_status, output.recorded) == (0, True)
    assert not (tmp_path / "changed").exists()
    assert dry.node == "here"


async def test_no_destination_is_this_machine() -> None:
    async with open_all({"here": None}) as opened:
        assert isinstance(opened.all_done()["here"], LocalTransport)


async def test_every_node_finishes_and_every_error_is_kept() -> None:
    finished = []

    async def work(name: str, delay: int) -> str:
        for _ in range(delay):
            await asyncio.sleep(0)
        if name.startswith("bad"):
            raise NodeUnreachable("gone", node=name)
        finished.append(name)
        return name.upper()

    outcomes = await on_all({"bad1": 0, "good1": 5, "bad2": 2, "good2": 9}, work)
    assert finished == ["good1", "good2"]
    assert outcomes.done == {"good1": "GOOD1", "good2": "GOOD2"}
    assert {name: str(error) for name, error in outcomes.failed.items()} == {
        "bad1": "bad1: gone",
        "bad2": "bad2: gone",
    }
    with pytest.raises(NodesFailed, match="bad1: gone\nbad2: gone") as caught:
        outcomes.all_done()
    assert caught.value.exit_code == 3


async def test_nodes_that_are_lost_or_found_meanwhile_do_not_mix_up_the_results() -> None:
    nodes = {"lost": 1, "stays": 2}

    async def work(name: str, number: int) -> int:
        nodes.pop("lost", None)
        nodes["found"] = 3
        return number

    assert (await on_all(nodes, work)).done == {"lost": 1, "stays": 2}


async def test_one_error_is_raised_as_it_is() -> None:
    async def work(name: str, _item: None) -> None:
        raise ClusterctlError("odd", node=name)

    with pytest.raises(ClusterctlError, match="n: odd"):
        (await on_all({"n": None}, work)).all_done()


async def test_a_fault_of_our_own_is_raised_after_the_others_have_finished() -> None:
    finished = asyncio.Event()

    async def work(name: str, _item: None) -> None:
        if name == "broken":
            raise ZeroDivisionError
        await asyncio.sleep(0)
        finished.set()

    with pytest.raises(ZeroDivisionError):
        await on_all({"broken": None, "slow": None}, work)
    assert finished.is_set()
