"""Whether a head makes progress: what its counters and its programs tell from look to look. Pure.

A head whose worker hangs stays healthy for ever, and a head in a long prompt says nothing for a while. What
tells the two apart is whether anything moves: its counters, the bytes and the processor time of its programs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from clusterctl.llama.serving import Pulse, has_advanced

DEADLINE_S = 30.0
# Longer than any one step of a prompt takes: 2048 tokens at the 3 tok/s of the slowest cluster published.
PATIENCE_S = 900.0
# Answering our own questions costs a head far less than this part of a processor.
_WORKING_SHARE = 0.2


class Verdict(StrEnum):
    """A token or part of one came; one is due, but not for long; none comes; it can't be told."""

    PROVEN = "proven"
    WAITING = "waiting"
    STUCK = "stuck"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Motion:
    """What the programs had done at one time: bytes that workers moved, processor seconds of workers and head."""

    moved_bytes: Mapping[str, int]
    worker_s: Mapping[str, float]
    head_s: float | None

    def has_moved(self, since: Motion, elapsed_s: float) -> bool:
        """Whether any program has done something since; also if too little is known to deny it."""
        if not self.worker_s or self.worker_s.keys() != since.worker_s.keys():
            return True
        if self.head_s is None or since.head_s is None or self.head_s - since.head_s > elapsed_s * _WORKING_SHARE:
            return True
        return self.moved_bytes != since.moved_bytes or any(
            seconds > since.worker_s[name] for name, seconds in self.worker_s.items()
        )


@dataclass(frozen=True, slots=True)
class Track:
    """What is known of a head's progress so far. Times are seconds of one steady clock.

    `due_since_s` is when a token was due and nothing had advanced yet; `None` while nothing is due.
    """

    last: Pulse | None = None
    proven_at_s: float | None = None
    due_since_s: float | None = None
    motion_then: Motion | None = None
    has_moved: bool = False

    @property
    def is_waiting(self) -> bool:
        """Whether a token is due."""
        return self.due_since_s is not None

    def seeing(self, pulse: Pulse, motion: Motion) -> Track:
        """The track after one more look."""
        last = pulse if pulse.answered else self.last
        if pulse.answered and self.last is not None and has_advanced(self.last, pulse):
            return Track(last, proven_at_s=pulse.at_s)
        if pulse.is_idle or (pulse.answered and not pulse.tells):
            return Track(last, self.proven_at_s)
        if self.due_since_s is None or self.motion_then is None:
            return replace(self, last=last, due_since_s=pulse.at_s, motion_then=motion, has_moved=False)
        if motion.moved_bytes.keys() != self.motion_then.moved_bytes.keys():
            # Bytes are counted only once a token is due, so the second look is the first that can be compared.
            return replace(self, last=last, motion_then=motion)
        moved = motion.has_moved(self.motion_then, pulse.at_s - self.due_since_s)
        return replace(self, last=last, has_moved=self.has_moved or moved)

    def proven(self, at_s: float) -> Track:
        """The track after a token has come."""
        return Track(self.last, at_s)

    def verdict(self, now_s: float, deadline_s: float = DEADLINE_S) -> tuple[Verdict, str]:
        """Say how it stands, and why."""
        if self.due_since_s is None:
            if self.proven_at_s is not None:
                return Verdict.PROVEN, f"tokens came {now_s - self.proven_at_s:.0f} s ago"
            is_told = self.last is not None and self.last.tells
            return Verdict.UNKNOWN, "" if is_told else "the head tells nothing of its work"
        silent_s = now_s - self.due_since_s
        if silent_s < deadline_s:
            return Verdict.WAITING, f"at work; nothing has come out for {silent_s:.0f} s"
        if not self.has_moved:
            return Verdict.STUCK, f"a request has not advanced for {silent_s:.0f} s, and no program does anything"
        if silent_s >= max(PATIENCE_S, deadline_s):
            return Verdict.STUCK, f"a request has not advanced for {silent_s:.0f} s"
        return Verdict.UNKNOWN, f"a request has not advanced for {silent_s:.0f} s, but its programs are at work"
