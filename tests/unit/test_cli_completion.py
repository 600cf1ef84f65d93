"""Completion scripts, used as shells use them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from clusterctl.cli.main import COMMANDS
from tests.unit.cli_program import MAIN, Cli, environment

IN_BASH = """
eval "$(clusterctl completion bash)"
offer() {
    COMPREPLY=() COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    _clusterctl_completion clusterctl
    echo "${COMPREPLY[@]}"
}
offer clusterctl st
offer clusterctl down --no
complete -p clusterctl
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """An executable called `clusterctl`, and the directory to find it in."""
    file = tmp_path / "bin" / "clusterctl"
    file.parent.mkdir()
    file.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{MAIN[1]}" "$@"\n')
    file.chmod(0o755)
    return file


def complete(program: Path, shell: str, words: str, position: int) -> list[str]:
    """Ask the program for completions, as the script of a shell does."""
    incomplete = words.split(" ")[position]
    variables = {
        "_CLUSTERCTL_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": incomplete if shell == "fish" else words,
        "COMP_CWORD": incomplete if shell == "fish" else str(position),
    }
    done = subprocess.run(
        [program],
        env=environment(program.parent, **variables),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout.splitlines()


def test_bash_completes_a_command_and_its_options(program: Path) -> None:
    path = f"{program.parent}:{environment(program.parent)['PATH']}"
    done = subprocess.run(
        ["bash", "-c", IN_BASH],
        env=environment(program.parent, PATH=path),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    commands, options, registered = done.stdout.splitlines()
    assert commands == "status"
    assert options.split() == ["--node", "--no-progress"]
    assert "_clusterctl_completion" in registered
    assert done.stderr == ""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_gets_a_script_that_it_can_read(shell: str, cli: Cli, tmp_path: Path) -> None:
    done = cli("completion", shell)
    assert done.exit_code == 0
    assert "_CLUSTERCTL_COMPLETE" in done.stdout
    if shutil.which(shell):
        (tmp_path / "script").write_text(done.stdout)
        subprocess.run([shell, "-n", tmp_path / "script"], timeout=20, check=True)


@pytest.mark.parametrize(("shell", "line"), [("bash", "plain,check"), ("zsh", "check"), ("fish", "plain,check\t")])
def test_every_shell_is_answered_in_its_own_form(shell: str, line: str, program: Path) -> None:
    assert complete(program, shell, "clusterctl chec", 1)[1 if shell == "zsh" else 0].startswith(line)


def test_all_commands_are_offered(program: Path) -> None:
    offered = complete(program, "bash", "clusterctl ", 1)
    assert [line.removeprefix("plain,") for line in offered] == list(COMMANDS)


def test_an_unknown_shell_is_refused(cli: Cli) -> None:
    assert cli("completion", "tcsh").exit_code == 2
