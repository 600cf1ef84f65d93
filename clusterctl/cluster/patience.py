"""How long a load may take: as long as something moves, and not for ever. Pure; the time is passed in."""

from __future__ import annotations

from dataclasses import dataclass, replace

from clusterctl.model import MIB

BASE_DEADLINE_S = 120.0
STALL_TIMEOUT_S = 300.0
# The slowest load published for such a cluster is 100 Mbit/s over one stream (llama.cpp issue 27653).
SLOWEST_LOAD_BYTES_S = 12_000_000
ESTIMATE_MARGIN = 4
# Less is the noise of a program that waits: every request to it touches a little more of its memory.
STEP_BYTES = 4 * MIB


def load_deadline_s(model_bytes: int, expected_s: float | None) -> float:
    """How long a load may take where its progress can't be seen, in seconds.

    `expected_s` is the plan's estimate from bytes and link speed, `None` where a speed is unknown.
    """
    load_s = model_bytes / SLOWEST_LOAD_BYTES_S if expected_s is None else expected_s * ESTIMATE_MARGIN
    return BASE_DEADLINE_S + load_s


@dataclass(frozen=True, slots=True)
class Limits:
    """`stall_s` is the longest pause between two signs of progress, `hard_s` the end in any case.

    `deadline_s` is how long a load may take whose progress can't be seen.
    """

    deadline_s: float
    stall_s: float = STALL_TIMEOUT_S
    hard_s: float | None = None


@dataclass(frozen=True, slots=True)
class Patience:
    """What was seen of a load so far: when it began, when it last moved, and where it stood then.

    Times are seconds of one clock. `moved_bytes` is what its programs read, hold and sent in all; `None` if
    unknown.
    """

    limits: Limits
    began_s: float
    moved_s: float
    moved_bytes: int | None = None
    line: str = ""

    def seeing(self, now_s: float, moved_bytes: int | None, line: str) -> Patience:
        """The same load a while later, with its last log line."""
        known_bytes = self.moved_bytes if moved_bytes is None else moved_bytes
        # Compared with the last sign of progress, so that what a slow link brings adds up.
        step_bytes = abs((known_bytes or 0) - (self.moved_bytes or 0))
        if line != self.line or step_bytes >= STEP_BYTES:
            return replace(self, moved_s=now_s, moved_bytes=known_bytes, line=line)
        return self

    def refusal(self, now_s: float) -> str | None:
        """Why to wait no longer; `None` to go on."""
        limits, waited_s = self.limits, now_s - self.began_s
        if limits.hard_s is not None and waited_s >= limits.hard_s:
            return f"the head does not serve after {limits.hard_s:g} s; last log line: {self.line}"
        may_end = self.moved_bytes is not None or waited_s >= limits.deadline_s
        if may_end and now_s - self.moved_s >= limits.stall_s:
            return f"no progress for {limits.stall_s:g} s at: {self.line}"
        return None
