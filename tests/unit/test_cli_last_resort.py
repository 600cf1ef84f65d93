"""What nobody foresaw, and Ctrl-C: an exit code and a message, never a traceback."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE
from types import ModuleType

import click
import pytest

from clusterctl.cli.main import COMMANDS, GlobalCommand
from clusterctl.cli.running import run
from clusterctl.errors import NodesFailed, StartFailed
from tests.unit.cli_program import MAIN, Cli, environment


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Adds a command `trial` to the program."""

    def add(body: Callable[[], object]) -> None:
        module = ModuleType("clusterctl.cli.trial")
        module.__dict__["trial"] = GlobalCommand("trial", callback=body)
        monkeypatch.setitem(COMMANDS, "trial", "For a test.")
        monkeypatch.setitem(sys.modules, module.__name__, module)

    return add


Add = Callable[[Callable[[], object]], None]


def crash() -> None:
    raise ZeroDivisionError("by nothing")


def test_an_error_that_nobody_foresaw_is_exit_code_1_without_a_traceback(command: Add, cli: Cli) -> None:
    command(crash)
    done = cli("trial")
    assert done.exit_code == 1
    assert "unexpected ZeroDivisionError: by nothing" in done.stderr
    assert "-vv" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_it_is_a_json_document_as_well(command: Add, cli: Cli) -> None:
    command(crash)
    assert json.loads(cli("trial", "--json").stdout)["error"]["exit_code"] == 1


@pytest.mark.parametrize(
    "arguments", [["version"], ["schema", "recipe"], ["--json", "version"], ["-vv", "version"], ["--json", "up"]]
)
def test_a_full_disk_below_stdout_is_one_line(arguments: list[str], tmp_path: Path) -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, *MAIN, *arguments],
            stdout=full,
            stderr=PIPE,
            text=True,
            check=False,
            env=environment(tmp_path),
        )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "error: can't write to stdout: no space left on device"
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("closed", "arguments", "exit_code"),
    [
        (">&-", ["version"], 0),
        ("2>&-", ["version"], 0),
        (">&-", ["check"], 2),
        (">&- 2>&-", ["check"], 2),
        ("<&-", ["version"], 0),
        ("2>/dev/full", ["nonsense"], 2),
        ("2>/dev/full", ["check"], 2),
    ],
)
def test_a_stream_that_is_closed_or_full_from_the_start_changes_no_exit_code(
    closed: str, arguments: list[str], exit_code: int, tmp_path: Path
) -> None:
    line = f'exec "$@" {closed}'
    argv = ["sh", "-c", line, "sh", sys.executable, *MAIN, *arguments]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env=environment(tmp_path))
    assert done.returncode == exit_code
    assert "Traceback" not in done.stderr


def test_an_error_of_another_file_is_not_taken_for_one_of_stdout(command: Add, cli: Cli) -> None:
    def fill() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    command(fill)
    assert "unexpected OSError" in cli("trial").stderr


@pytest.mark.parametrize(
    "arguments", [["-vv", "trial"], ["trial", "-vv"], ["-v", "-v", "trial"], ["trial", "-vvv"]]
)
def test_with_vv_the_traceback_shows(arguments: list[str], command: Add, cli: Cli) -> None:
    command(crash)
    with pytest.raises(ZeroDivisionError):
        cli(*arguments)


@pytest.mark.parametrize(("returned", "exit_code"), [(None, 0), (0, 0), (9, 9)])
def test_what_a_command_returns_is_the_exit_code(returned: object, exit_code: int, command: Add, cli: Cli) -> None:
    command(lambda: returned)
    assert cli("trial").exit_code == exit_code


def test_several_nodes_that_failed_are_all_shown(command: Add, cli: Cli) -> None:
    def fail() -> None:
        raise NodesFailed(
            [StartFailed("no memory", node="w1", hint="buy some"), StartFailed("no disk", node="w2")]
        )

    command(fail)
    done = cli("trial", "--json")
    assert done.exit_code == 6
    assert "w1: no memory" in done.stderr
    assert "buy some" in done.stderr
    assert "w2: no disk" in json.loads(done.stdout)["error"]["message"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_lets_the_work_clean_up_and_tells_what_is_left(
    number: signal.Signals, command: Add, cli: Cli
) -> None:
    cleaned = []

    async def work() -> None:
        try:
            os.kill(os.getpid(), number)
            await asyncio.Event().wait()
        except asyncio.CancelledError as error:
            cleaned.append("up")
            error.add_note("could not undo `start the workers`: w2 is gone")
            raise

    command(lambda: run(work()))
    done = cli("trial", "--json")
    assert cleaned == ["up"]
    assert done.exit_code == 130
    assert "w2 is gone" in done.stderr
    assert json.loads(done.stdout)["error"]["exit_code"] == 130


def test_an_answer_of_no_at_a_question_is_an_interrupt(command: Add, cli: Cli) -> None:
    def decline() -> None:
        raise click.Abort

    command(decline)
    assert cli("trial").exit_code == 130
