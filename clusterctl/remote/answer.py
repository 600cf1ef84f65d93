"""The frame of a script's answer: sections with a name, an exit status and a length."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from clusterctl.errors import ClusterctlError


@dataclass(frozen=True, slots=True)
class Section:
    """One part of an answer: a program's exit status and its text."""

    status: int
    text: str

    @property
    def lines(self) -> tuple[str, ...]:
        """The text's lines."""
        return tuple(self.text.splitlines())


def parse_answer(node: str, data: bytes) -> Mapping[str, Section]:
    """Return the sections of an answer by name.

    The length decides where a section ends, so no text a program prints can pass for another section.

    Raises:
        ClusterctlError: if the answer is cut short or is not of this form, with what came instead.
    """
    sections: dict[str, Section] = {}
    position = 0
    while position < len(data):
        end = data.find(b"\n", position)
        name, _, numbers = data[position : max(end, position)].decode(errors="replace").partition(" ")
        status, _, length = numbers.rpartition(" ")
        if not (length.isascii() and length.isdigit() and status.lstrip("-").isdigit()):
            raise _not_an_answer(node, data[position:])
        start, stop = end + 1, end + 1 + int(length)
        if len(data) < stop + 1:
            raise _not_an_answer(node, data[position:])
        sections[name] = Section(int(status), data[start:stop].decode(errors="replace"))
        position = stop + 1
    return sections


def _not_an_answer(node: str, rest: bytes) -> ClusterctlError:
    seen = rest[:120].decode(errors="replace")
    return ClusterctlError(
        f"the node's answer broke off, or something else was printed into it: {seen!r}",
        node=node,
        hint="run the command again; if it happens again, the node's `sh` is not a POSIX shell",
    )
