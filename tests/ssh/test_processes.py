"""Programs that are started and ended on a node: the very one on record, and nothing else."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from clusterctl.cluster.observation import observe
from clusterctl.cluster.record import Process, ProcessState, Record
from clusterctl.cluster.starting import Launch, start
from clusterctl.cluster.stopping import stop_recorded
from clusterctl.errors import Degraded, StartFailed
from clusterctl.model import NodeCommand, Role
from clusterctl.remote import commands
from clusterctl.remote.ssh import SshTransport, connect
from tests.ssh.server import Server, living_of
from tests.ssh.waiting import until

CLUSTER, NODE = "demo", "strix1"
SLEEP = ("sleep", "1000")

# Says what it was given, then waits for a writer that never comes; `read` is the shell's own, so it has no child.
PATIENT = 'echo ready; read -r _ <"$0"'
STUBBORN = f'trap "" TERM; {PATIENT}'


@dataclass(frozen=True, slots=True)
class Node:
    """A node, its files, and the few things that are done to its programs."""

    server: Server
    transport: SshTransport

    @property
    def directory(self) -> Path:
        """Where the program's record lies."""
        return self.server.home / ".local/state/clusterctl" / CLUSTER / "nodes" / NODE

    @property
    def fifo(self) -> str:
        """A pipe without a writer: whoever opens it to read waits for ever."""
        path = self.server.home / "fifo"
        if not path.exists():
            os.mkfifo(path)
        return str(path)

    async def start(self, argv: Sequence[str], env: Mapping[str, str] | None = None) -> tuple[int, list[str]]:
        """Start a program; return the script's status and the lines state, pid, exit status."""
        record = Record(CLUSTER, NODE, Role.WORKER, tuple(argv), "10.0.0.2", 50052, "b1", "me", "now", "digest")
        command = commands.start(CLUSTER, NODE, argv, record=record.to_json(), env=env or {})
        output = await self.transport.run(command)
        return output.exit_status, output.stdout.decode().splitlines()

    async def start_running(self, argv: Sequence[str], env: Mapping[str, str] | None = None) -> psutil.Process:
        """Start a program that stays, and return its process."""
        status, lines = await self.start(argv, env)
        assert (status, lines[0], lines[2]) == (0, "running", "")
        return psutil.Process(int(lines[1]))

    async def stop(self, grace_s: int = 10, exit_status: int = 0) -> str:
        """End the program on record; return what became of it."""
        output = await self.transport.run(commands.stop(CLUSTER, NODE, grace_s=grace_s))
        assert output.exit_status == exit_status
        return output.stdout.decode().strip()

    async def seen(self) -> Process | None:
        """The record and its process as the node sees them."""
        return (await observe(self.transport, CLUSTER)).process(NODE)

    def log_holds(self, text: str) -> bool:
        """Whether the program has printed something."""
        return text in (self.directory / "log").read_text()

    def alter(self, **lines: str) -> None:
        """Write another pid, start time or boot id into the record's process file."""
        file = self.directory / "process"
        known = dict(zip(("pid", "start", "boot"), file.read_text().splitlines(), strict=True))
        file.write_text("\n".join({**known, **lines}.values()) + "\n")

    async def is_clean(self) -> bool:
        """Whether neither files nor processes are left."""
        await until(lambda: not living_of(self.server.home))
        return not self.directory.parents[1].exists()

    def script(self, *lines: str) -> str:
        """A wrapper script with these lines."""
        path = self.server.home / "llama-wrapper"
        path.write_text("\n".join(("#!/bin/sh", *lines, "")))
        path.chmod(0o755)
        return str(path)


@pytest.fixture(name="on")
def node_with_its_files(node: SshTransport, server: Server) -> Node:
    return Node(server, node)


async def test_a_started_program_is_on_record_and_runs_on(on: Node) -> None:
    program = await on.start_running(SLEEP)
    process = await on.seen()
    assert process is not None
    assert process.state is ProcessState.RUNNING
    assert process.pid == program.pid
    assert process.record.argv == SLEEP
    assert process.exit_status is None


async def test_stop_ends_the_program_and_leaves_nothing(on: Node) -> None:
    program = await on.start_running(SLEEP)
    assert await on.stop() == "stopped"
    assert not program.is_running()
    assert await on.seen() is None
    assert await on.is_clean()


async def test_stopping_twice_finds_nothing_to_do(on: Node) -> None:
    await on.start_running(SLEEP)
    assert await on.stop() == "stopped"
    assert await on.stop() == "absent"
    assert await on.is_clean()


async def test_arguments_paths_and_variables_arrive_as_they_were_given(on: Node) -> None:
    odd = ["it's", 'a "quote"', "$HOME", "`id`", "two\nlines\n", "", " ", "*", "\\", "ümlaut", "-n", "#no"]
    directory = on.server.home / 'it\'s a "place" $(id)\n'
    directory.mkdir()
    program = shutil.copy("/bin/sh", directory / "my shell")
    env = {"ODD": 'it\'s "$HOME"\n`id`', "EMPTY": "", "EQUALS": "a=b=c"}
    argv = (str(program), "-c", PATIENT, on.fifo, *odd)
    running = await on.start_running(argv, env)
    assert tuple(running.cmdline()) == argv
    assert {name: running.environ()[name] for name in env} == env
    assert await on.stop() == "stopped"
    assert await on.is_clean()


async def test_a_program_outlives_the_connection_that_started_it(on: Node) -> None:
    program = await on.start_running(SLEEP)
    on.server.machine.drop_connections()
    again = Node(on.server, await connect(NODE, on.server.destination))
    process = await again.seen()
    assert process is not None
    assert process.runs
    assert process.pid == program.pid
    assert await again.stop() == "stopped"
    await again.transport.close()


async def test_a_second_start_is_refused_and_changes_nothing(on: Node) -> None:
    program = await on.start_running(SLEEP)
    before = (on.directory / "record.json").read_text()
    status, lines = await on.start(("sleep", "2000"))
    assert (status, lines) == (3, ["already running"])
    assert (on.directory / "record.json").read_text() == before
    assert program.is_running()


async def test_a_program_that_ends_at_once_tells_its_status_and_its_last_words(on: Node) -> None:
    status, lines = await on.start(("sh", "-c", "echo no memory >&2; exit 7"))
    assert status == 0
    assert lines[0] == "ended"
    assert lines[2] == "7"
    assert on.log_holds("no memory")
    process = await on.seen()
    assert process is not None
    assert (process.state, process.exit_status) == (ProcessState.ENDED, 7)
    assert await on.stop() == "ended"
    assert await on.is_clean()


async def test_a_program_that_does_not_exist_ends_with_the_shells_status(on: Node) -> None:
    status, lines = await on.start(("/no/such/program", "-x"))
    assert (status, lines[0], lines[2]) == (0, "ended", "127")
    assert on.log_holds("/no/such/program")


async def test_a_program_that_dies_later_leaves_its_status(on: Node) -> None:
    program = await on.start_running(SLEEP)
    program.kill()
    await until((on.directory / "exit").exists)
    process = await on.seen()
    assert process is not None
    assert (process.state, process.exit_status) == (ProcessState.ENDED, 128 + signal.SIGKILL)


async def test_an_ended_program_can_be_started_anew(on: Node) -> None:
    await on.start(("sh", "-c", "exit 1"))
    program = await on.start_running(SLEEP)
    process = await on.seen()
    assert process is not None
    assert (process.pid, process.exit_status) == (program.pid, None)


async def test_a_program_that_ignores_sigterm_is_killed_after_the_grace(on: Node) -> None:
    program = await on.start_running(("sh", "-c", STUBBORN, on.fifo))
    await until(lambda: on.log_holds("ready"))
    assert await on.stop(grace_s=1) == "killed"
    assert not program.is_running()
    assert await on.is_clean()


async def test_a_stopped_program_ends_as_well(on: Node) -> None:
    program = await on.start_running(SLEEP)
    program.suspend()
    assert await on.stop() == "stopped"
    assert await on.is_clean()


@pytest.mark.parametrize("line", [{"start": "1"}, {"boot": "00000000-0000-0000-0000-000000000000"}])
async def test_a_process_of_another_time_with_the_same_number_is_not_ours(on: Node, line: dict[str, str]) -> None:
    program = await on.start_running(SLEEP)
    on.alter(**line)
    process = await on.seen()
    assert process is not None
    assert process.state is ProcessState.ENDED
    assert await on.stop() == "ended"
    assert program.status() == psutil.STATUS_SLEEPING


async def test_a_process_that_took_other_arguments_is_neither_ended_nor_forgotten(on: Node) -> None:
    program = await on.start_running(SLEEP)
    (on.directory / "argv").write_text("sleep\n999\n")
    assert await on.stop(exit_status=1) == f"unsure {program.pid}"
    assert program.status() == psutil.STATUS_SLEEPING
    process = await on.seen()
    assert process is not None
    assert (process.state, process.pid) == (ProcessState.UNSURE, program.pid)
    assert await on.start(SLEEP) == (3, ["already running"])


@pytest.mark.parametrize("argv", [None, ""])
async def test_a_process_whose_arguments_are_not_on_record_is_neither_ended_nor_forgotten(
    on: Node, argv: str | None
) -> None:
    program = await on.start_running(SLEEP)
    (on.directory / "argv").unlink()
    if argv is not None:
        (on.directory / "argv").write_text(argv)
    assert await on.stop(exit_status=1) == f"unsure {program.pid}"
    assert program.status() == psutil.STATUS_SLEEPING


async def test_stopping_what_may_not_be_ours_says_what_to_look_at(on: Node) -> None:
    program = await on.start_running(SLEEP)
    (on.directory / "argv").write_text("sleep\n999\n")
    with pytest.raises(Degraded, match="has other arguments") as caught:
        await stop_recorded(on.transport, CLUSTER, NODE, Role.WORKER, lambda _step: None)
    assert f"ps -ww -p {program.pid}" in str(caught.value.hint)


async def test_a_script_that_adds_arguments_is_ended_at_its_start(on: Node) -> None:
    argv = (on.script('exec sleep "$@" 1'), "1000")
    status, lines = await on.start(argv)
    assert (status, lines[0]) == (0, "unsure")
    await until((on.directory / "exit").exists)
    assert await on.stop() == "ended"
    assert await on.is_clean()


async def test_a_script_that_adds_arguments_is_told_to_pass_them_on_as_they_are(on: Node) -> None:
    launch = Launch(
        NodeCommand(NODE, Role.WORKER, (on.script('exec sleep "$@" 1'), "1000")), "10.0.0.2", 50052, "", ""
    )
    with pytest.raises(StartFailed, match="other arguments") as caught:
        await start({NODE: on.transport}, CLUSTER, launch)
    assert "llama-wrapper is a script" in str(caught.value.hint)


async def test_what_others_hold_of_the_cards_at_the_start_is_on_record(
    on: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 'pid, process_name, used_gpu_memory [MiB]'\necho '777, python, 5000 MiB'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    launch = Launch(NodeCommand(NODE, Role.WORKER, SLEEP), "10.0.0.2", 50052, "", "", {"CUDA0": 24000})
    assert await start({NODE: on.transport}, CLUSTER, launch)
    process = await on.seen()
    assert process is not None
    assert process.record.held_before_mib == {"777": 5000}


async def test_a_program_that_can_not_be_written_down_does_not_stay(on: Node) -> None:
    (on.directory / "process.new").mkdir(parents=True)
    status, _ = await on.start((on.script("sleep 1000", "true"),))
    assert status == 1
    await until(lambda: not living_of(on.server.home))


@pytest.mark.parametrize("pid", ["", "0", "-1", "1", "x", "99999999"])
async def test_a_damaged_record_signals_nobody(on: Node, pid: str) -> None:
    program = await on.start_running(SLEEP)
    on.alter(pid=pid)
    assert await on.stop() == "ended"
    assert program.is_running()


async def test_an_empty_process_file_signals_nobody(on: Node) -> None:
    program = await on.start_running(SLEEP)
    (on.directory / "process").write_text("")
    assert await on.stop() == "ended"
    assert program.is_running()


async def test_a_script_that_runs_the_program_for_us_is_ours_too(on: Node) -> None:
    program = await on.start_running((on.script('read -r _ <"$2"'), "-m", on.fifo))
    assert await on.stop() == "stopped"
    assert not program.is_running()
    assert await on.is_clean()


async def test_what_a_script_runs_for_us_ends_with_it(on: Node) -> None:
    program = await on.start_running((on.script('sleep "$@"', "true"), "1000"))
    await until(lambda: bool(program.children()))
    assert await on.stop() == "stopped"
    assert await on.is_clean()


async def test_what_a_script_runs_for_us_is_killed_if_it_outlives_the_script(on: Node) -> None:
    program = await on.start_running((on.script(f"sh -c '{STUBBORN}' \"$1\"", "true"), on.fifo))
    await until(lambda: on.log_holds("ready"))
    assert await on.stop(grace_s=1) == "killed"
    assert not program.is_running()
    assert await on.is_clean()


async def test_what_a_script_has_started_is_neither_ended_nor_forgotten_once_the_script_was_killed(
    on: Node,
) -> None:
    script = await on.start_running((on.script('sleep "$@"', "true"), "1000"))
    await until(lambda: bool(script.children()))
    (child,) = script.children()
    script.kill()
    await until((on.directory / "exit").exists)
    for _ in range(2):
        assert await on.stop(exit_status=1) == f"outlived {script.pid}"
    process = await on.seen()
    assert process is not None
    assert process.state is ProcessState.UNSURE
    assert await on.start(SLEEP) == (3, ["already running"])
    with pytest.raises(Degraded, match="what it had started lives on") as caught:
        await stop_recorded(on.transport, CLUSTER, NODE, Role.WORKER, lambda _step: None)
    assert f"kill -- -{script.pid}" in str(caught.value.hint)
    assert child.is_running()
    child.kill()
    await until(lambda: not child.is_running())
    assert await on.stop() == "ended"
    assert await on.is_clean()


async def test_a_script_that_becomes_the_program_is_ours_too(on: Node) -> None:
    program = await on.start_running((on.script('exec sleep "$@"'), "1000"))
    await until(lambda: program.cmdline() == list(SLEEP))
    assert await on.stop() == "stopped"
    assert not program.is_running()
    assert await on.is_clean()


async def test_logs_are_read_by_line_and_by_offset(on: Node) -> None:
    await on.start(("sh", "-c", "echo one; echo two; printf three"))
    tail = await on.transport.run(commands.log_tail(CLUSTER, NODE, 2))
    assert tail.stdout == b"13\ntwo\nthree"
    rest = await on.transport.run(commands.log_from(CLUSTER, NODE, 8))
    assert rest.stdout == b"13\nthree"
    nothing = await on.transport.run(commands.log_from(CLUSTER, NODE, 13))
    assert nothing.stdout == b"13\n"
    assert (await on.transport.run(commands.log_tail("other", NODE, 2))).exit_status == 3
