"""Progress is proven by what advances; what stands still is stuck only if all of it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from clusterctl.cluster.progress import PATIENCE_S, Motion, Track, Verdict
from clusterctl.llama.serving import Pulse, Slot
from tests.unit.sights import WELL, ended, with_node

DEADLINE_S = 30.0
STILL = Motion({"left": 1000, "right": 1000}, {"left": 5.0, "right": 5.0}, head_s=9.0)


def busy(at_s: float, decoded: int = 7) -> Pulse:
    return Pulse(at_s, True, (Slot(0, True, task=1, decoded_tokens=decoded),))


def idle(at_s: float) -> Pulse:
    return Pulse(at_s, True, (Slot(0, False, task=1, decoded_tokens=7),))


def silent(at_s: float) -> Pulse:
    return Pulse(at_s, answered=False)


def after(*looks: tuple[Pulse, Motion]) -> Track:
    track = Track()
    for pulse, motion in looks:
        track = track.seeing(pulse, motion)
    return track


def verdict(track: Track, now_s: float) -> Verdict:
    return track.verdict(now_s, DEADLINE_S)[0]


def test_a_busy_head_is_waited_for_and_proven_once_a_token_has_come() -> None:
    assert verdict(after((busy(0), STILL)), 0) is Verdict.WAITING
    assert verdict(after((busy(0), STILL), (busy(1, decoded=8), STILL)), 1) is Verdict.PROVEN


@pytest.mark.parametrize("pulse", [busy, silent])
def test_a_request_that_stands_still_with_all_programs_is_stuck_at_the_deadline(
    pulse: Callable[[float], Pulse],
) -> None:
    track = after((busy(0), STILL), (pulse(10), STILL), (pulse(31), STILL))
    assert verdict(track, 29) is Verdict.WAITING
    assert verdict(track, 31) is Verdict.STUCK


@pytest.mark.parametrize(
    "moved",
    [
        replace(STILL, moved_bytes={"left": 2000, "right": 1000}),
        replace(STILL, worker_s={"left": 5.1, "right": 5.0}),
        replace(STILL, head_s=20.0),
    ],
)
def test_a_long_step_in_which_programs_work_is_not_stuck_before_all_patience_ends(moved: Motion) -> None:
    track = after((busy(0), STILL), (silent(31), moved))
    assert verdict(track, 31) is Verdict.UNKNOWN
    assert verdict(track, PATIENCE_S + 1) is Verdict.STUCK


def test_answering_our_own_questions_is_no_work() -> None:
    assert not replace(STILL, head_s=10.0).has_moved(STILL, elapsed_s=30.0)


@pytest.mark.parametrize(
    "motion",
    [
        replace(STILL, worker_s={}),
        replace(STILL, worker_s={"left": 5.0}),
        replace(STILL, head_s=None),
    ],
)
def test_where_too_little_is_known_nothing_is_called_stuck(motion: Motion) -> None:
    assert verdict(after((busy(0), STILL), (busy(31), motion)), 31) is Verdict.UNKNOWN


def test_bytes_that_are_counted_only_from_the_second_look_on_have_not_moved() -> None:
    first = replace(STILL, moved_bytes={})
    assert verdict(after((busy(0), first), (busy(1), STILL), (busy(31), STILL)), 31) is Verdict.STUCK


def test_an_idle_head_that_once_worked_is_proven_and_one_that_never_did_is_unknown() -> None:
    assert verdict(after((busy(0), STILL), (idle(1), STILL)), 60) is Verdict.PROVEN
    assert Track().seeing(idle(0), STILL).verdict(60) == (Verdict.UNKNOWN, "")


def test_nothing_is_due_from_a_head_that_tells_nothing() -> None:
    track = after((Pulse(0, True), STILL), (Pulse(60, True), STILL))
    assert not track.is_waiting
    assert track.verdict(60)[0] is Verdict.UNKNOWN
    assert track.verdict(60)[1]


def test_progress_ends_all_waiting() -> None:
    stuck = after((busy(0), STILL), (busy(31), STILL))
    assert verdict(stuck.seeing(busy(40, decoded=8), STILL), 40) is Verdict.PROVEN
    assert verdict(stuck.proven(40), 41) is Verdict.PROVEN


def test_the_motion_of_a_cluster_is_that_of_its_running_programs() -> None:
    moving = with_node(WELL, "left", moved_bytes={"left": 77})
    assert moving.motion == Motion({"left": 77}, {"left": 1.0, "right": 1.0}, 1.0)
    assert ended(moving, "right", 137).motion.worker_s == {"left": 1.0}


def test_a_cluster_with_a_dead_or_a_lone_worker_is_not_whole() -> None:
    assert WELL.is_whole
    assert not ended(WELL, "left", 137).is_whole
    assert not with_node(WELL, "left", sockets=()).is_whole
