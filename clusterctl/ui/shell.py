"""Command lines to copy: what a shell reads from them is exactly the argv."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

from clusterctl.escaping import is_unseen

_OPTION = re.compile(r"--?[A-Za-z]")


def quote(word: str) -> str:
    r"""Quote a word for POSIX shells.

    A word with unseen characters becomes `$'…'`, which bash, zsh and POSIX.1-2024 read: it can be shown
    without acting on the terminal, and still pastes as the same bytes.
    """
    if not any(is_unseen(character) for character in word):
        return shlex.quote(word)
    return "$'" + "".join(_escaped(character) for character in word) + "'"


def command_text(argv: Sequence[str], env: Mapping[str, str], width: int) -> str:
    """Return a command on one line if it fits in `width`, else one option per line joined by backslashes."""
    assignments = [f"{quote(name)}={quote(value)}" for name, value in env.items()]
    program, *options = (" ".join(group) for group in _groups(argv))
    groups = [" ".join([*assignments, program]), *options]
    line = " ".join(groups)
    return line if len(line) <= width else " \\\n  ".join(groups)


def _groups(argv: Sequence[str]) -> Iterator[list[str]]:
    """The program alone, then each option with its values."""
    group: list[str] = []
    for position, word in enumerate(argv):
        if position and _OPTION.match(word):
            yield group
            group = []
        group.append(quote(word))
    yield group


def _escaped(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if not is_unseen(character):
        return character
    # Three octal digits, since a hex escape swallows the hex digits that may follow it.
    return "".join(f"\\{byte:03o}" for byte in character.encode("utf-8", "surrogatepass"))
