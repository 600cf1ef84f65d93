"""Text from nodes and files made harmless for a terminal: nothing unseen, nothing that acts."""

from __future__ import annotations

import unicodedata

# Controls, formats (bidi overrides, zero-width, tags), lone surrogates, line and paragraph separators.
_UNSEEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def printable(text: str) -> str:
    r"""Return `text` with every unseen character as a visible escape such as `\x1b` or `\u202e`.

    Line feeds stay and a tab becomes a space.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_visible(character) for character in text)


def one_line(text: str) -> str:
    """Return `printable` text on one line: runs of white space become one space."""
    return " ".join(printable(text).split())


def is_unseen(character: str) -> bool:
    """Whether a character shows nothing by itself, and may act on a terminal or reorder a line."""
    return unicodedata.category(character) in _UNSEEN_CATEGORIES


def _visible(character: str) -> str:
    if character == "\n":
        return character
    if character == "\t":
        return " "
    if not is_unseen(character):
        return character
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
