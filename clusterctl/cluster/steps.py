"""Telling what goes on: the one way in which steps reach the screen."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from clusterctl.errors import ClusterctlError
from clusterctl.model import Outcome, Step

Tell = Callable[[Step], None]


class Note:
    """What the body of `telling` may set before it ends."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self.detail = ""


@contextmanager
def telling(tell: Tell, title: str, node: str | None = None, outcome: Outcome = Outcome.DONE) -> Iterator[Note]:
    """Tell that a step began, and how it ended: as its `Note` says, or as failed if it raises."""
    began = time.monotonic()
    tell(Step(title, Outcome.STARTED, node))
    note = Note(outcome)
    try:
        yield note
    except BaseException as error:
        reason = error.message if isinstance(error, ClusterctlError) else str(error)
        if isinstance(error, asyncio.CancelledError):
            reason = "interrupted"
        tell(Step(title, Outcome.FAILED, node, time.monotonic() - began, reason.partition("\n")[0]))
        raise
    tell(Step(title, note.outcome, node, time.monotonic() - began, note.detail))
