"""Completion scripts, used as shells use them."""

from __future__ import annotations

import os
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
offer clusterctl -i ""
offer clusterctl up -r rec
offer clusterctl -i inventory/lab.yaml down --node ""
offer clusterctl init --head ops@d
complete -p clusterctl
"""


IN_FISH = "clusterctl completion fish | source; complete -C 'clusterctl -i inventory/lab.yaml logs s'"

# Its widgets work in an interactive shell alone; what they are given is what would be offered.
IN_ZSH = """
compdef() { }
compadd() { print -l -- $completions }
_describe() { print -l -- $completions_with_descriptions }
eval "$(clusterctl completion zsh)"
words=(clusterctl -i inventory/lab.yaml logs s) CURRENT=5
_clusterctl_completion
words=(clusterctl chec) CURRENT=2
_clusterctl_completion
"""

# What each of the command line's words leads to, in the directory that `site` makes.
OFFERS = {
    "-i ": ["here.yml", "inventory/lab.yaml"],
    "-i inv": ["inventory/lab.yaml"],
    "status -i inventory/l": ["inventory/lab.yaml"],
    "-r ": ["recipes/small.yaml"],
    "-i inventory/lab.yaml logs ": ["desk", "strix1", "strix2"],
    "-i inventory/lab.yaml logs desk strix": ["strix1", "strix2"],
    "-i gone.yaml logs -i inventory/lab.yaml d": ["desk"],
    "-i inventory/broken.txt logs ": [],
    "-i gone.yaml logs ": [],
    "logs ": [],
    "init d": ["desk"],
    "init desk ops@d": ["ops@desk"],
    "schema r": ["recipe", "recover"],
    "install --from w": ["wheel"],
    "completion f": ["fish"],
}
INVENTORY = """\
version: 1
cluster: lab
nodes:
  - {name: desk, host: "${DESK}", role: head}
  - {name: strix1}
  - name: strix2
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A directory with inventories, recipes and other files, which is the home directory too."""
    for folder in ("inventory", "recipes", ".ssh"):
        (tmp_path / folder).mkdir()
    (tmp_path / "inventory" / "lab.yaml").write_text(INVENTORY)
    (tmp_path / "inventory" / "broken.txt").write_text("nodes : [{name: a}, }")
    (tmp_path / "here.yml").write_text("nodes: [1, {name: [x]}]\n")
    (tmp_path / "compose.yaml").write_text("services:\n  nodes: 1\n")
    (tmp_path / "recipes" / "small.yaml").write_text("version: 1\nmodel: {path: /m.gguf}\n")
    (tmp_path / ".ssh" / "config").write_text("Host desk\n")
    return tmp_path


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """An executable called `clusterctl`, and the directory to find it in."""
    file = tmp_path / "bin" / "clusterctl"
    file.parent.mkdir()
    file.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{MAIN[1]}" "$@"\n')
    file.chmod(0o755)
    return file


def complete(program: Path, shell: str, words: str, **variables: str) -> list[str]:
    """Ask the program for completions of the last word, as the script of a shell does."""
    *before, incomplete = words.split(" ")
    variables |= {
        "_CLUSTERCTL_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": incomplete if shell == "fish" else str(len(before)),
    }
    done = subprocess.run(
        [program],
        cwd=program.parents[1],
        env=environment(program.parents[1], **variables),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return [line for line in done.stdout.splitlines() if line]


def in_shell(shell: str, script: str, program: Path, site: Path) -> list[str]:
    path = f"{program.parent}:{environment(site)['PATH']}"
    done = subprocess.run(
        [shell, "-c", script],
        cwd=site,
        env=environment(site, PATH=path),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_bash_completes_what_is_there(program: Path, site: Path) -> None:
    *offered, registered = in_shell("bash", IN_BASH, program, site)
    assert offered == [
        "status",
        "--node --no-progress",
        "here.yml inventory/lab.yaml",
        "recipes/small.yaml",
        "desk strix1 strix2",
        "ops@desk",
    ]
    assert "_clusterctl_completion" in registered


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_completes_what_is_there(program: Path, site: Path) -> None:
    assert in_shell("fish", IN_FISH, program, site) == ["strix1", "strix2"]


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_completes_what_is_there(program: Path, site: Path) -> None:
    *nodes, command = in_shell("zsh", IN_ZSH, program, site)
    assert nodes == ["strix1", "strix2"]
    assert command == f"check:{COMMANDS['check']}"


@pytest.mark.parametrize(("typed", "offered"), OFFERS.items())
def test_files_nodes_and_hosts_are_offered(typed: str, offered: list[str], program: Path, site: Path) -> None:
    lines = complete(program, "bash", f"clusterctl {typed}")
    assert [line.removeprefix("plain,") for line in lines] == offered


def test_nodes_come_from_the_inventory_of_the_environment_too(program: Path, site: Path) -> None:
    named = {"CLUSTERCTL_INVENTORY": "inventory/lab.yaml"}
    assert complete(program, "bash", "clusterctl logs de", **named) == ["plain,desk"]
    assert complete(program, "bash", "clusterctl -i here.yml logs de", **named) == []


def test_where_no_file_of_ours_is_near_the_shell_completes_files(program: Path, site: Path) -> None:
    assert complete(program, "bash", "clusterctl -i ../x") == ["file,../x"]
    assert complete(program, "bash", "clusterctl plan --facts f") == ["file,f"]


def test_completing_takes_no_time(program: Path, site: Path) -> None:
    """Seconds of processor time, since other work on the machine counts in those of the clock."""
    before = os.times()
    complete(program, "bash", "clusterctl -i inventory/lab.yaml logs ")
    after = os.times()
    assert after.children_user + after.children_system - before.children_user - before.children_system < 0.3


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
    assert complete(program, shell, "clusterctl chec")[1 if shell == "zsh" else 0].startswith(line)


def test_all_commands_are_offered(program: Path) -> None:
    offered = complete(program, "bash", "clusterctl ")
    assert [line.removeprefix("plain,") for line in offered] == list(COMMANDS)


def test_an_unknown_shell_is_refused(cli: Cli) -> None:
    assert cli("completion", "tcsh").exit_code == 2
