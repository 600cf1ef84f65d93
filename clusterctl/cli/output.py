"""Standard output that takes no more: its reader has left, its disk is full, or it was closed from the start."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def replace_closed() -> None:
    """Give the program somewhere to write to where `>&-` or `2>&-` has left it nothing."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115  # it stays open to the end


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
