"""Prompts of an exact number of tokens, no two of them alike."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files

# A prime, so that prompts begin at ever other words of the text.
STRIDE = 37


@cache
def prompt_text() -> str:
    """The text that all prompts are cut from: plain English, as models with experts behave by what they read."""
    return files(__package__).joinpath("prompt.txt").read_text(encoding="utf-8")


def prompt_tokens(text_tokens: Sequence[int], number: int, count: int) -> list[int]:
    """Return `count` tokens of the text, which is repeated as needed.

    Prompts with different `number` begin at different words, so that no cache of the head knows their start.
    """
    start = number * STRIDE
    return [text_tokens[(start + index) % len(text_tokens)] for index in range(count)]
