"""The logs on a node: kept short while their program writes, read without gaps, and how much a program moves."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from clusterctl.cluster.observation import observe
from clusterctl.cluster.record import Process, ProcessState, Record
from clusterctl.model import Role
from clusterctl.remote import commands
from clusterctl.remote.ssh import SshTransport
from tests.ssh.server import Server
from tests.ssh.waiting import until

CLUSTER, NODE = "demo", "strix1"
LOG_BYTES = 40_000

# Numbered lines of ten bytes until a file says that it is enough, then an exit status of its own.
CHATTER = 'while [ ! -e "$0" ]; do i=$((i + 1)); printf "%09d\\n" "$i"; done; exit 7'


@dataclass(frozen=True, slots=True)
class Node:
    """A node with one program on record."""

    transport: SshTransport
    home: Path

    @property
    def directory(self) -> Path:
        """Where its record lies."""
        return self.home / ".local/state/clusterctl" / CLUSTER / "nodes" / NODE

    async def start(self, argv: Sequence[str]) -> psutil.Process:
        """Start a program with a short log and return its process."""
        record = Record(CLUSTER, NODE, Role.WORKER, tuple(argv), "10.0.0.2", 50052, "b1", "me", "now", "digest")
        command = commands.start(CLUSTER, NODE, argv, record=record.to_json(), env={"i": "0"}, log_bytes=LOG_BYTES)
        state, pid, _ = (await self.transport.run(command)).stdout.decode().splitlines()
        assert state == "running"
        return psutil.Process(int(pid))

    async def read(self, offset: int) -> tuple[int, str]:
        """The log from an offset on: the bytes written so far, and the text."""
        output = await self.transport.run(commands.log_from(CLUSTER, NODE, offset))
        written, _, text = output.stdout.decode().partition("\n")
        return int(written), text

    async def tail(self, lines: int) -> list[str]:
        """The last lines."""
        output = await self.transport.run(commands.log_tail(CLUSTER, NODE, lines))
        return output.stdout.decode().splitlines()[1:]

    async def seen(self) -> Process:
        """The program as the node sees it."""
        process = (await observe(self.transport, CLUSTER)).process(NODE)
        assert process is not None
        return process

    async def stop(self) -> str:
        """End the program."""
        output = await self.transport.run(commands.stop(CLUSTER, NODE, grace_s=5))
        return output.stdout.decode().strip()


@pytest.fixture(name="on")
def node_with_its_files(node: SshTransport, server: Server) -> Node:
    return Node(node, server.home)


async def test_a_log_is_cut_back_while_its_program_writes(on: Node) -> None:
    enough = on.home / "enough"
    program = await on.start(("sh", "-c", CHATTER, str(enough)))
    old, log = on.directory / "log.old", on.directory / "log"
    await until(old.exists)
    await until(lambda: old.stat().st_size == LOG_BYTES)
    assert program.is_running()
    assert (await on.seen()).state is ProcessState.RUNNING

    enough.touch()
    await until((on.directory / "exit").exists)
    assert (await on.seen()).exit_status == 7
    assert re.fullmatch(r"(\d{9}\n)+", log.read_text()[-LOG_BYTES:].partition("\n")[2])
    assert await on.stop() == "ended"
    assert not on.directory.exists()


def cut_log(on: Node, old: str, log: str, start: int) -> None:
    """A log as `start` leaves it after it was cut: `start` bytes were written before those in `log`."""
    on.directory.mkdir(parents=True)
    for name, text in {"log.old": old, "log": log, "log.start": f"{start}\n"}.items():
        (on.directory / name).write_text(text)


async def test_reading_goes_on_where_it_stopped_although_the_log_was_cut(on: Node) -> None:
    cut_log(on, old="three\nfour\n", log="five\nsix\n", start=20)
    assert await on.read(9) == (29, "three\nfour\nfive\nsix\n")
    assert await on.read(15) == (29, "four\nfive\nsix\n")
    assert await on.read(20) == (29, "five\nsix\n")
    assert await on.read(25) == (29, "six\n")
    assert await on.read(29) == (29, "")


async def test_what_is_gone_is_left_out(on: Node) -> None:
    cut_log(on, old="three\nfour\n", log="five\n", start=20)
    assert await on.read(0) == (25, "three\nfour\nfive\n")


async def test_a_log_shorter_than_before_is_a_new_one(on: Node) -> None:
    cut_log(on, old="", log="one\n", start=0)
    assert await on.read(1000) == (4, "one\n")


async def test_the_last_lines_reach_back_into_what_was_cut_off(on: Node) -> None:
    cut_log(on, old="three\nfour\n", log="five\n", start=20)
    assert await on.tail(2) == ["four", "five"]
    assert await on.tail(100) == ["three", "four", "five"]


READER = """
import os, sys, time
weights, go = sys.argv[1:]
while not os.path.exists(go):
    time.sleep(0.01)
open(weights, "rb").read()
time.sleep(1000)
"""


async def test_bytes_that_a_program_reads_are_seen_to_move(on: Node) -> None:
    weights, go = on.home / "weights", on.home / "go"
    weights.write_bytes(bytes(30_000_000))
    program = await on.start((sys.executable, "-c", READER, str(weights), str(go)))

    async def moved_bytes() -> int:
        return (await observe(on.transport, CLUSTER, activity=True)).moved_bytes[NODE]

    before = await moved_bytes()
    go.touch()
    await until(lambda: program.io_counters().read_chars > 30_000_000)
    assert await moved_bytes() - before >= 30_000_000
    assert (await observe(on.transport, CLUSTER)).moved_bytes == {}
    await on.stop()


async def test_files_of_a_program_are_for_its_user_alone(on: Node) -> None:
    await on.start(("sleep", "1000"))
    entries = [on.directory, *on.directory.iterdir(), *list(on.directory.parents)[:3]]
    assert {
        entry.name: oct(entry.stat().st_mode & 0o077) for entry in entries if entry.stat().st_mode & 0o077
    } == {}
    await on.stop()


async def test_values_of_variables_stand_in_no_process_list(on: Node) -> None:
    program, told, go = (on.home / name for name in ("llama-server", "told", "go"))
    program.write_text(f"#!/bin/sh\necho $LLAMA_API_KEY >{told}\nwhile [ ! -e {go} ]; do :; done\n")
    program.chmod(0o755)
    listing = commands.list_devices([str(program)], ["10.0.0.2:50052"], {"LLAMA_API_KEY": "sk-secret"})
    running = asyncio.create_task(on.transport.run(listing))
    await until(lambda: told.exists() and told.read_text() == "sk-secret\n")
    assert [argv for argv in map(arguments_of, psutil.process_iter()) if "sk-secret" in argv] == []
    go.touch()
    assert (await running).exit_status == 0


def arguments_of(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""
