"""A command for a node as a value: a constant script, its values, and whether it changes anything."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files

from clusterctl.errors import NodeUnreachable, UsageError

# Printed before anything else, so that the chatter of a login script never passes for an answer.
MARK = "::clusterctl::"
# Printed by a script that is fed, once `sh` has read all of it and will not read on by itself.
READY = "::ready::"


class Effect(StrEnum):
    """READ commands also run in a dry run; CHANGE commands are only recorded there."""

    READ = "read"
    CHANGE = "change"


@dataclass(frozen=True, slots=True)
class Command:
    """`script` names a file of `remote/scripts`; `arguments` reach it as `"$@"`, byte for byte."""

    script: str
    arguments: tuple[str, ...] = ()
    effect: Effect = Effect.READ

    def text(self, *, is_fed: bool = False) -> bytes:
        """The POSIX shell text to feed to `sh -s`.

        The text travels on standard input, so no login shell ever parses a value and no value shows in a
        process list. The braces make sh read all of it before it runs any; programs find an empty stdin. With
        `is_fed`, what follows the text is the script's descriptor 3, and all it says goes to stdout.

        Raises:
            UsageError: if a value holds what no program argument can carry: NUL, or half a surrogate pair.
        """
        values = shell_line(self.arguments)
        body = f"{_shared()}\n{_script(self.script)}"
        first, streams = (f"echo {READY}\n", "3<&0 </dev/null 2>&1") if is_fed else ("", "</dev/null")
        text = f"echo {MARK}\nset -- {values}\n{{\n{first}{body}\nexit\n}} {streams}\n"
        try:
            encoded = text.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            encoded = b"\0"
        if b"\0" in encoded:
            raise UsageError(f"a value for `{self.script}` holds a character that no program can be given")
        return encoded


def shell_line(argv: Iterable[str]) -> str:
    """Return a command as one line of POSIX shell."""
    return shlex.join(argv)


@dataclass(frozen=True, slots=True)
class Output:
    """What a finished command left: its exit status and both streams.

    `recorded` marks the answer of a dry run to a command that was only written down.
    """

    exit_status: int
    stdout: bytes
    stderr: str
    recorded: bool = False


def output_of(node: str, exit_status: int, stdout: bytes, stderr: bytes) -> Output:
    """The output of a finished command, without what a login script printed before it.

    Raises:
        NodeUnreachable: if the command never ran, with the reason that the node gives.
    """
    _, mark, answer = stdout.partition(f"{MARK}\n".encode())
    complaint = stderr.decode(errors="replace")
    if not mark:
        seen = (complaint or stdout.decode(errors="replace")).strip()[:200] or f"exit status {exit_status}"
        raise NodeUnreachable(
            f"the login shell did not run `sh`: {seen}",
            node=node,
            hint="the SSH user needs a shell that runs commands, such as /bin/sh or /bin/bash",
        )
    return Output(exit_status, answer, complaint)


@cache
def _shared() -> str:
    """What every script begins with; on the node, the shell takes the part that is for its system."""
    choice = f"case $machine in\nLinux*)\n{_script('linux')}\n;;\n*)\n{_script('macos')}\n;;\nesac"
    return f"{_script('prelude')}\n{choice}"


@cache
def _script(name: str) -> str:
    return files(__package__).joinpath("scripts", f"{name}.sh").read_text(encoding="utf-8")
