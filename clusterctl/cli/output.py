"""Standard output that takes no more: its reader has left, or its disk is full."""

from __future__ import annotations

import os
import sys


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
