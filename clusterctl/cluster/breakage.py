"""Whether a cluster needs to be brought back, judged from its status. Pure.

What can't be told is no reason to act: a control machine that lost its network must not touch a cluster that
serves.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from clusterctl.model import Severity
from clusterctl.reports import StatusReport

# What has died stays dead, what was stopped waits for somebody, and a token was waited for; anything else may
# have passed by the next look.
_CERTAIN = frozenset({"head-stopped", "worker-stopped", "head-suspended", "worker-suspended", "wedged"})


class Verdict(StrEnum):
    """Leave it; let it load; wait, because too little is known; bring it back; it is not meant to be up."""

    WELL = "well"
    LOADING = "loading"
    UNSURE = "unsure"
    BROKEN = "broken"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class Breakage:
    """The verdict, the node that broke (the head if no worker is to blame), and the cause in words.

    `is_certain`: whether one look is enough to act on it.
    """

    verdict: Verdict
    culprit: str
    cause: str = ""
    is_certain: bool = True


def judge_status(status: StatusReport) -> Breakage:
    """Say whether to act on what `status` found."""
    head = status.head.node
    # What is left of another run does not keep this one from serving.
    errors = [p for p in status.problems if p.severity is Severity.ERROR and p.code != "orphan"]
    unreachable = [problem.message for problem in errors if problem.code == "unreachable"]
    if unreachable or status.state == "unknown":
        return Breakage(Verdict.UNSURE, _culprit(status), "; ".join(unreachable) or "too little can be seen")
    if status.desired is None:
        return Breakage(Verdict.ABSENT, head, "nothing is on record: it was never up, or was taken down")
    if status.desired == "down":
        return Breakage(Verdict.ABSENT, head, "it has been taken down, or is about to be")
    if status.state == "loading":
        return Breakage(Verdict.LOADING, head, "it loads")
    if status.state != "down" and not errors:
        return Breakage(Verdict.WELL, head, "it serves")
    is_certain = status.state == "down" or any(problem.code in _CERTAIN for problem in errors)
    cause = "; ".join(problem.message for problem in errors) or "no program of it runs"
    return Breakage(Verdict.BROKEN, _culprit(status), cause, is_certain)


def _culprit(status: StatusReport) -> str:
    """The first worker that is not what it should be; the head if workers only idle for want of it."""
    head = status.head
    lost = [worker.node for worker in status.workers if worker.pid is None or worker.state == "suspended"]
    if lost and status.state != "down":
        return lost[0]
    if head.pid is None or head.health != "ok":
        return head.node
    return next((worker.node for worker in status.workers if worker.state != "serving"), head.node)
