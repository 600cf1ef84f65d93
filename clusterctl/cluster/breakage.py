"""Whether a cluster needs to be brought back, judged from its status. Pure.

What can't be told is no reason to act: a control machine that lost its network must not touch a cluster that
serves.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from clusterctl.reports import StatusReport


class Verdict(StrEnum):
    """Leave it; wait, because too little is known; bring it back; or leave it down, since someone took it down."""

    WELL = "well"
    UNSURE = "unsure"
    BROKEN = "broken"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class Breakage:
    """The verdict, the node that broke (the head if no worker is to blame), and the cause in words."""

    verdict: Verdict
    culprit: str
    cause: str = ""


def judge_status(status: StatusReport) -> Breakage:
    """Say whether to act on what `status` found."""
    culprit = next((w.node for w in status.workers if w.state != "serving"), status.head.node)
    cause = "; ".join(problem.message for problem in status.problems) or f"the cluster is {status.state}"
    if any(problem.code == "unreachable" for problem in status.problems) or status.state == "unknown":
        return Breakage(Verdict.UNSURE, culprit, cause)
    if status.state in ("up", "loading"):
        return Breakage(Verdict.WELL, culprit)
    if status.state == "down" and status.head.url is None and not status.workers:
        return Breakage(Verdict.ABSENT, culprit, "nothing is on record: it was never up, or was taken down")
    return Breakage(Verdict.BROKEN, culprit, cause)
