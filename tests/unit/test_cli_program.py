"""The program from the outside: streams, exit codes, colours, and how errors reach people and scripts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from io import RawIOBase
from pathlib import Path

import pytest

from clusterctl.cli.app import App
from tests.unit.cli_program import MAIN, Cli, environment

INVENTORY = """\
version: 1
cluster: demo-of-tests
nodes:
  - {name: here, role: head, connection: local, llama: {bin_dir: /no/such/place}}
"""
FAULTY = """\
version: 1
cluster: Demo
nodes:
  - {name: here, role: chief, prot: 1}
"""


@pytest.fixture
def here(tmp_path: Path) -> str:
    """An inventory of this machine alone, which has nothing of llama.cpp where it is looked for."""
    file = tmp_path / "here.yaml"
    file.write_text(INVENTORY)
    return str(file)


def test_without_an_inventory_nothing_is_done_and_the_error_says_how_to_make_one(cli: Cli) -> None:
    done = cli("check")
    assert done.exit_code == 2
    assert done.stdout == ""
    assert "no inventory is named" in done.stderr
    assert "clusterctl init" in done.stderr


def test_without_a_recipe_nothing_is_planned(here: str, cli: Cli) -> None:
    done = cli("plan", "-i", here)
    assert done.exit_code == 2
    assert "no recipe is named" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["logs", "--mask"], "--mask would do nothing without --bundle"),
        (["logs", "-f", "-n", "5", "--bundle", "x.tar.gz"], "--follow and --lines would do nothing with --bundle"),
        (["logs", "here", "--bundle", "x.tar.gz"], "NODE would do nothing with --bundle"),
        (["up", "--no-wait", "--timeout", "9"], "--timeout would do nothing with --no-wait"),
        (["up", "--no-wait", "--stall-timeout", "9"], "--stall-timeout would do nothing with --no-wait"),
        (["status", "--interval", "2"], "--interval would do nothing without --watch"),
        (["-q", "version", "-v"], "--quiet and --verbose contradict each other"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(
    arguments: list[str], reason: str, here: str, cli: Cli
) -> None:
    done = cli("-i", here, *arguments)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert f"error: {reason}" in done.stderr
    assert "hint: leave" in done.stderr


def test_an_inventory_that_is_missing_is_named(cli: Cli) -> None:
    done = cli("-i", "gone.yaml", "check")
    assert done.exit_code == 2
    assert "gone.yaml" in done.stderr


def test_all_faults_of_a_file_are_shown_at_once(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "faulty.yaml").write_text(FAULTY)
    done = cli("-i", str(tmp_path / "faulty.yaml"), "check")
    assert done.exit_code == 2
    assert "faulty.yaml:2:10: cluster:" in done.stderr
    assert "faulty.yaml:4:24: nodes[0].role:" in done.stderr
    assert "faulty.yaml:4:31: nodes[0]: unknown key `prot`" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["check"],
        ["check", "-i", "gone.yaml"],
        ["no-such-command"],
        ["check", "--no-such-option"],
        ["--color", "mauve", "check"],
        ["logs", "-n", "many"],
        ["schema"],
        ["logs", "--follow"],
        [],
    ],
)
def test_an_error_is_one_json_document_on_stdout_too(arguments: list[str], cli: Cli) -> None:
    done = cli("--json", *arguments)
    document = json.loads(done.stdout)
    assert done.exit_code == 2
    assert document["ok"] is False
    assert document["error"]["exit_code"] == 2
    assert document["error"]["message"]
    assert done.stderr


@pytest.mark.parametrize("place", ["before", "after"])
def test_global_options_are_taken_before_and_after_the_command(place: str, here: str, cli: Cli) -> None:
    options = ["--json", "-i", here]
    arguments = [*options, "status"] if place == "before" else ["status", *options]
    done = cli(*arguments)
    assert done.exit_code == 0
    assert json.loads(done.stdout)["state"] == "down"


def test_an_option_beats_the_environment_wherever_it_stands(here: str, cli: Cli) -> None:
    elsewhere = {"CLUSTERCTL_INVENTORY": "gone.yaml"}
    for arguments in (["-i", here, "status"], ["status", "-i", here]):
        assert cli(*arguments, env=elsewhere).exit_code == 0
    assert cli("status", env=elsewhere).exit_code == 2
    assert cli("status", env={"CLUSTERCTL_INVENTORY": here}).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "exit_code"),
    [
        (["check"], 4),
        (["status"], 0),
        (["down", "--yes"], 0),
        (["unlock"], 0),
        (["logs"], 2),
        (["version"], 0),
        (["schema", "recipe"], 0),
    ],
)
def test_every_answer_is_one_json_document(arguments: list[str], exit_code: int, here: str, cli: Cli) -> None:
    done = cli(*arguments, "-i", here, "--json")
    assert isinstance(json.loads(done.stdout), dict)
    assert done.exit_code == exit_code


def test_down_of_nothing_leaves_no_trace(here: str, cli: Cli, tmp_path: Path) -> None:
    done = cli("down", "--yes", "-i", here, "--json")
    document = json.loads(done.stdout)
    assert document | {"ok": True, "changed": False, "endpoint": None, "steps": [], "left": []} == document
    assert list((tmp_path / ".local/state/clusterctl").iterdir()) == []


@pytest.mark.parametrize(
    ("typed", "exit_code", "said"), [("n\n", 0, "nothing was ended"), ("\x04", 130, ": interrupted")]
)
def test_down_asks_on_a_terminal_and_takes_no_for_an_answer(
    typed: str, exit_code: int, said: str, here: str, tmp_path: Path
) -> None:
    ours, theirs = os.openpty()
    with (
        os.fdopen(ours, "r+b", buffering=0) as terminal,
        subprocess.Popen(
            (sys.executable, *MAIN, "-i", here, "down"),
            env=environment(tmp_path),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        ) as command,
    ):
        read_until(terminal, "End cluster demo-of-tests on all nodes? [y/N]: ")
        terminal.write(typed.encode())
        read_until(terminal, said)
        assert command.wait(60) == exit_code
    os.close(theirs)


def read_until(terminal: RawIOBase, text: str) -> None:
    """Return as soon as a terminal has shown `text`."""
    shown = b""
    while text.encode() not in shown:
        shown += terminal.read(1000) or b""


def test_an_inventory_that_every_command_finds_by_itself_is_not_named_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CLUSTERCTL_INVENTORY", "lab.yaml")
    assert App(inventory="lab.yaml").screen().program == ("clusterctl",)
    assert App(inventory="other.yaml").screen().program == ("clusterctl", "-i", "other.yaml")
    monkeypatch.delenv("CLUSTERCTL_INVENTORY")
    assert App(inventory="lab.yaml").screen().program == ("clusterctl", "-i", "lab.yaml")


def test_who_wants_quiet_gets_the_result_and_errors(here: str, cli: Cli) -> None:
    done = cli("-q", "down", "--yes", "-i", here)
    assert (done.stdout, done.stderr) == ("down: nothing was running\n", "")
    assert "no inventory is named" in cli("down", "--quiet").stderr


@pytest.mark.parametrize(("typed", "meant"), [("chek", "check"), ("stat", "status"), ("recove", "recover")])
def test_a_command_that_does_not_exist_suggests_the_nearest(typed: str, meant: str, cli: Cli) -> None:
    done = cli(typed)
    assert done.exit_code == 2
    assert f"did you mean `{meant}`?" in done.stderr


def test_a_command_that_is_like_none_is_named(cli: Cli) -> None:
    done = cli("xyzzy")
    assert done.exit_code == 2
    assert "xyzzy" in done.stderr
    assert "did you mean" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "env", "is_colored"),
    [
        ([], {}, False),
        ([], {"FORCE_COLOR": "1"}, True),
        ([], {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (["--color", "always"], {}, True),
        (["--color", "always"], {"NO_COLOR": "1"}, True),
        (["--color", "never"], {"FORCE_COLOR": "1"}, False),
    ],
)
def test_colour_is_used_when_it_is_wanted(
    arguments: list[str], env: dict[str, str], is_colored: bool, here: str, cli: Cli
) -> None:
    error = cli("check", *arguments, env=env)
    assert ("\x1b[" in error.stderr) is is_colored
    answer = cli(*arguments, "status", "-i", here, env=env)
    assert ("\x1b[" in answer.stdout) is is_colored


@pytest.mark.parametrize(
    ("arguments", "exit_code"),
    [
        (["schema", "inventory"], 0),
        (["--help"], 0),
        (["status", "-i"], 0),
        (["check", "--json"], 2),
        (["nonsense", "--json"], 2),
        (["up", "--json", "-r", "/no/such/recipe", "-i"], 2),
        (["check", "-i"], 4),
    ],
)
def test_a_reader_that_has_left_changes_no_exit_code(
    arguments: list[str], exit_code: int, here: str, tmp_path: Path
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    words = [*arguments, here] if arguments[-1] == "-i" else arguments
    with os.fdopen(writing, "wb") as pipe:
        done = subprocess.run(
            (sys.executable, *MAIN, *words),
            env=environment(tmp_path),
            stdout=pipe,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    assert done.returncode == exit_code
    assert b"Traceback" not in done.stderr
    assert b"roken pipe" not in done.stderr
