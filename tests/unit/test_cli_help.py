"""`--help`: every command has one, it fits narrow terminals, and it comes at once."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import click
import jsonschema
import pytest

from clusterctl import __version__
from clusterctl.cli.main import COMMANDS, GLOBAL_OPTIONS, cli
from tests.unit.cli_program import MAIN, Cli, environment

HEAVY = ("asyncio", "asyncssh", "cryptography", "httpx", "psutil", "pydantic", "rich", "yaml")


def command(name: str) -> click.Command:
    found = cli.get_command(click.Context(cli), name)
    assert found is not None
    return found


def commands_and_subcommands() -> Iterator[tuple[str, ...]]:
    """The words that lead to every command."""
    for name in COMMANDS:
        yield (name,)
        found = command(name)
        if isinstance(found, click.Group):
            yield from ((name, inner) for inner in found.list_commands(click.Context(found)))


@pytest.mark.parametrize("words", list(commands_and_subcommands()), ids=" ".join)
@pytest.mark.parametrize("columns", ["60", "100"])
def test_every_help_fits_its_terminal_and_names_the_global_options(
    words: tuple[str, ...], columns: str, cli: Cli
) -> None:
    done = cli(*words, "--help", env={"COLUMNS": columns})
    assert (done.exit_code, done.stderr) == (0, "")
    assert max(map(len, done.stdout.splitlines())) <= int(columns)
    for option in GLOBAL_OPTIONS:
        assert option.opts[-1] in done.stdout


def test_the_first_help_lists_every_command_with_its_summary(cli: Cli) -> None:
    text = " ".join(cli("--help", env={"COLUMNS": "100"}).stdout.split())
    for name, summary in COMMANDS.items():
        assert f"{name} {summary}" in text


@pytest.mark.parametrize("name", COMMANDS)
def test_the_summary_is_the_first_line_of_the_commands_own_help(name: str) -> None:
    assert (command(name).help or "").partition("\n")[0] == COMMANDS[name]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_explained(name: str) -> None:
    found = command(name)
    options = [each for each in found.get_params(click.Context(found)) if isinstance(each, click.Option)]
    assert all(option.help for option in options)


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["no-such-command"], ["version"], ["version", "--help"]]
)
def test_what_needs_no_node_loads_nothing_heavy(arguments: list[str], tmp_path: Path) -> None:
    assert loaded_by(arguments, environment(tmp_path)).isdisjoint(HEAVY)


@pytest.mark.parametrize("words", ["clusterctl ", "clusterctl bench --", "clusterctl init h", "clusterctl -i "])
def test_completing_loads_nothing_heavy(words: str, tmp_path: Path) -> None:
    position = str(words.count(" "))
    asking = {"_CLUSTERCTL_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": position}
    assert loaded_by([], environment(tmp_path, **asking)).isdisjoint(HEAVY)


def loaded_by(arguments: list[str], variables: Mapping[str, str]) -> set[str]:
    """The modules that a run of the program imports."""
    done = subprocess.run(
        (sys.executable, "-X", "importtime", *MAIN, *arguments),
        env=variables,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    loaded = {line.rpartition("|")[2].strip() for line in lines}
    assert "click" in loaded
    return loaded


def test_the_version_is_told_in_three_ways(cli: Cli) -> None:
    assert cli("version").stdout == f"clusterctl {__version__}\n"
    assert json.loads(cli("version", "--json").stdout) == {"version": __version__}
    assert __version__ in cli("--version").stdout


@pytest.mark.parametrize("kind", ["inventory", "recipe"])
def test_the_schema_is_one_that_can_be_used(kind: str, cli: Cli) -> None:
    schema = json.loads(cli("schema", kind).stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert json.loads(cli("schema", kind, "--json").stdout) == schema
    assert not jsonschema.Draft202012Validator(schema).is_valid({"version": 1, "no-such-key": 1})
