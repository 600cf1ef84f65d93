"""The frame of a script's answer: sections with a name, an exit status and a length."""

from __future__ import annotations

import re
from dataclasses import dataclass

from clusterctl.errors import ClusterctlError

_HEADER = re.compile(rb"(?P<name>.+) (?P<status>-?[0-9]{1,9}) (?P<length>[0-9]{1,12})\n")
MAX_DIGITS = 18
_HINT = "run the command again; if it happens again, the node's `sh` is not a POSIX shell"


@dataclass(frozen=True, slots=True)
class Section:
    """One part of an answer: a program's exit status and its text."""

    status: int
    text: str

    @property
    def lines(self) -> tuple[str, ...]:
        """The text's lines."""
        return tuple(self.text.splitlines())


class Answer(dict[str, Section]):
    """The sections of an answer by name; a section that is missing is the node's fault, not ours."""

    def __init__(self, node: str) -> None:
        super().__init__()
        self.node = node

    def __missing__(self, name: str) -> Section:
        raise ClusterctlError(f"the node's answer has no part `{name}`", node=self.node, hint=_HINT)


def parse_answer(node: str, data: bytes) -> Answer:
    """Return the sections of an answer by name.

    The length decides where a section ends, so no text a program prints can pass for another section.

    Raises:
        ClusterctlError: if the answer is cut short or is not of this form, with what came instead.
    """
    sections = Answer(node)
    position = 0
    while position < len(data):
        header = _HEADER.match(data, position)
        stop = header.end() + int(header["length"]) if header else 0
        if header is None or data[stop : stop + 1] != b"\n":
            raise _not_an_answer(node, data[position:])
        text = data[header.end() : stop].decode(errors="replace")
        sections[header["name"].decode(errors="replace")] = Section(int(header["status"]), text)
        position = stop + 1
    return sections


def whole_number(text: str) -> int | None:
    """The number that a node printed; `None` for anything else, a number of absurd length included."""
    text = text.strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS else None


def _not_an_answer(node: str, rest: bytes) -> ClusterctlError:
    seen = rest[:120].decode(errors="replace")
    return ClusterctlError(
        f"the node's answer broke off, or something else was printed into it: {seen!r}",
        node=node,
        hint=_HINT,
    )
