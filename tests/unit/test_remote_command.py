"""Commands as text for `sh`: every value arrives byte for byte, in every shell there is."""

from __future__ import annotations

import os
import shutil
import subprocess
from importlib.resources import files

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from clusterctl.errors import NodeUnreachable, UsageError
from clusterctl.remote import commands
from clusterctl.remote.command import MARK, Command, Effect, output_of

SHELLS = [shell for shell in ("sh", "dash", "bash", "busybox") if shutil.which(shell)]
SCRIPTS = sorted(
    entry.name.removesuffix(".sh")
    for entry in files("clusterctl.remote").joinpath("scripts").iterdir()
    if entry.name not in ("prelude.sh", "linux.sh", "macos.sh")
)

# What a program can be given at all: any bytes but NUL, seen through Python's eyes.
arguments = st.binary(max_size=40).map(lambda raw: raw.replace(b"\0", b"").decode("utf-8", "surrogateescape"))
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)
# A prefix that the environment of whoever runs the tests does not have.
PREFIX = "SENT_BY_TEST_"
names = st.from_regex(r"[A-Z_][A-Z0-9_]{0,10}", fullmatch=True).map(lambda name: PREFIX + name)

NASTY = [
    "it's",
    '"',
    "$HOME",
    "`id`",
    "$(id)",
    "a\nb\n",
    "",
    " ",
    "*",
    "\\",
    "-n",
    "!!",
    "\r",
    "}",
    "x=1",
    "\x7f",
    "ü",
]


def run(command: Command, shell: str = "sh") -> bytes:
    """Feed a command to a real shell, as a transport does, and return its standard output after the mark."""
    argv = [shell, "sh", "-s"] if shell == "busybox" else [shell, "-s"]
    done = subprocess.run(argv, input=command.text(), capture_output=True, timeout=20, check=True)
    return output_of("strix1", done.returncode, done.stdout, done.stderr).stdout


def printed(values: list[str]) -> bytes:
    """What `printf '%s\\0'` prints of some values."""
    return b"".join(os.fsencode(value) + b"\0" for value in values)


def printing(values: list[str]) -> Command:
    """A command whose program prints its arguments, each followed by NUL."""
    return Command("run", (str(shutil.which("printf")), "%s\\0", *values))


@pytest.mark.parametrize("shell", SHELLS)
def test_nasty_values_arrive_in_every_shell(shell: str) -> None:
    assert run(printing(NASTY), shell) == printed(NASTY)


@settings(max_examples=60, deadline=None)
@given(st.lists(arguments | texts, min_size=1, max_size=12))
@example(NASTY)
def test_any_arguments_arrive_byte_for_byte(values: list[str]) -> None:
    assert run(printing(values)) == printed(values)


@settings(max_examples=30, deadline=None)
@given(st.dictionaries(names, arguments | texts, max_size=5))
def test_any_variables_arrive_byte_for_byte(variables: dict[str, str]) -> None:
    words = tuple(f"{name}={value}" for name, value in variables.items())
    seen = run(Command("run", (*words, str(shutil.which("env")), "-0"))).split(b"\0")
    assert {word for word in seen if word.startswith(PREFIX.encode())} == {os.fsencode(word) for word in words}


@pytest.mark.parametrize("value", ["\0", "before\0after", "\ud800", "half \udfff a pair"])
def test_what_no_program_can_be_given_is_refused(value: str) -> None:
    for command in (printing([value]), commands.lock("acquire", "demo", "t", lease_s=1, owner=value)):
        with pytest.raises(UsageError, match="holds a character that no program can be given"):
            command.text()


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("script", SCRIPTS)
def test_every_script_is_read_by_every_shell(script: str, shell: str) -> None:
    argv = [shell, "sh", "-n"] if shell == "busybox" else [shell, "-n"]
    subprocess.run(argv, input=Command(script).text(), timeout=20, check=True)


def test_programs_find_an_empty_standard_input() -> None:
    assert run(Command("run", ("sh", "-c", "wc -c"))).strip() == b"0"


def test_the_exit_status_is_the_scripts() -> None:
    done = subprocess.run(["sh", "-s"], input=Command("run", ("sh", "-c", "exit 7")).text(), check=False)
    assert done.returncode == 7


def test_only_what_changes_a_node_is_marked_as_a_change() -> None:
    changes = {
        commands.start("demo", "n", ("x",), record="{}", env={}),
        commands.stop("demo", "n", grace_s=1),
        commands.lock("acquire", "demo", "t", lease_s=1),
        commands.record("demo", ""),
    }
    reads = {
        commands.probe("demo", "head", bin_dir=None, ports=(), files=(), env={}),
        commands.observe("demo", ()),
        commands.read("/f", 0, 1),
        commands.list_devices(("x",), (), {}),
        commands.log_tail("demo", "n", 1),
        commands.log_from("demo", "n", 0),
    }
    assert {command.effect for command in changes} == {Effect.CHANGE}
    assert {command.effect for command in reads} == {Effect.READ}


def test_an_answer_begins_after_the_mark_alone() -> None:
    noise = f"{MARK} is no mark\nhello\n"
    assert output_of("n", 0, f"{noise}{MARK}\nanswer".encode(), b"").stdout == b"answer"


@pytest.mark.parametrize(
    ("stdout", "stderr", "seen"),
    [
        (b"This account is not available.\n", b"", "This account is not available."),
        (b"", b"sh: not found\n", "sh: not found"),
        (b"", b"", "exit status 1"),
        (b"\xff\xfe", b"", "\N{REPLACEMENT CHARACTER}"),
    ],
)
def test_a_node_that_runs_no_shell_is_told_by_its_own_words(stdout: bytes, stderr: bytes, seen: str) -> None:
    with pytest.raises(NodeUnreachable, match="the login shell did not run `sh`") as caught:
        output_of("strix1", 1, stdout, stderr)
    assert seen in caught.value.message
