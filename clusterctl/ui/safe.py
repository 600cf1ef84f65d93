"""Text from nodes and files made harmless for a terminal: nothing unseen, nothing that acts."""

from __future__ import annotations

from clusterctl.escaping import escaped


def printable(text: str) -> str:
    """Return `text` with every unseen character as a visible escape, but for line feeds; a tab becomes a space."""
    return "\n".join(escaped(line) for line in text.replace("\t", " ").split("\n"))


def one_line(text: str) -> str:
    """Return `printable` text on one line: runs of white space become one space."""
    return " ".join(printable(text).split())
