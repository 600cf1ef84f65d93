"""Standard streams that fail: stdout's reader has left, its disk is full, or one was closed from the start."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def replace_closed() -> None:
    """Give the program something to read from or write to where `<&-`, `>&-` or `2>&-` has left it nothing."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115  # it stays open to the end


@contextmanager
def read_or_not() -> Iterator[None]:
    """Let a command that has its result go on to its end although nobody reads that, as after `| head`."""
    try:
        yield
    except BrokenPipeError:
        discard()


def is_stuck() -> bool:
    """Whether stdout takes nothing more. Only writing tells, and an empty line harms no document."""
    try:
        print(flush=True)
    except OSError:
        return True
    return False


def discard() -> None:
    """Send what stdout holds, and all that follows, nowhere; Python would complain of it in the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
