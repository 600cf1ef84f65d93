"""Characters that show nothing by themselves, or act, as escapes that show."""

from __future__ import annotations

import unicodedata

# Controls, formats (bidi overrides, zero-width, tags), what no Unicode knows, lone surrogates, line and paragraph
# separators.
_UNSEEN_CATEGORIES = frozenset({"Cc", "Cf", "Cn", "Cs", "Zl", "Zp"})


def is_unseen(character: str) -> bool:
    """Whether a character shows nothing by itself, and may act on a terminal or reorder a line."""
    return unicodedata.category(character) in _UNSEEN_CATEGORIES


def escaped(text: str) -> str:
    r"""Return `text` with every unseen character, line feeds too, as an escape such as `\x1b` or `\u202e`."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        character.encode("unicode_escape").decode() if is_unseen(character) else character for character in text
    )
