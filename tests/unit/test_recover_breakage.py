"""When to act on what `status` found, and whom to blame."""

from __future__ import annotations

from dataclasses import replace

import pytest

from clusterctl.cluster.breakage import Verdict, judge_status
from clusterctl.model import Problem, Severity
from clusterctl.reports import HeadStatus, StatusReport, WorkerStatus

WELL = StatusReport(
    state="up",
    head=HeadStatus("head", pid=1, url="http://127.0.0.1:8080", health="ok"),
    workers=(
        WorkerStatus("left", "10.0.0.1:50052", pid=2, state="serving"),
        WorkerStatus("right", "10.0.0.2:50052", pid=3, state="serving"),
    ),
    desired="up",
)
NO_HEAD = HeadStatus("head", url="http://127.0.0.1:8080")


def error(code: str, message: str = "it broke") -> Problem:
    return Problem(code, Severity.ERROR, message)


def broken(state: str, *codes: str) -> StatusReport:
    return replace(WELL, state=state, problems=tuple(map(error, codes)))


def with_worker(status: StatusReport, name: str, **changes: object) -> StatusReport:
    workers = (replace(w, **changes) if w.node == name else w for w in status.workers)  # type: ignore[arg-type]
    return replace(status, workers=tuple(workers))


def test_a_cluster_that_serves_is_left_alone() -> None:
    assert judge_status(WELL).verdict is Verdict.WELL


def test_a_warning_is_no_reason_to_act() -> None:
    warned = replace(WELL, problems=(Problem("no-progress-seen", Severity.WARNING, "who knows"),))
    assert judge_status(warned).verdict is Verdict.WELL


def test_what_is_left_of_another_run_is_no_reason_to_end_this_one() -> None:
    assert judge_status(broken("degraded", "orphan")).verdict is Verdict.WELL


@pytest.mark.parametrize("state", ["degraded", "wedged", "unknown", "down"])
def test_a_node_that_cannot_be_seen_is_no_reason_to_act_whatever_else_is_wrong(state: str) -> None:
    unseen = broken(state, "unreachable", "worker-stopped", "head-stopped")
    assert judge_status(unseen).verdict is Verdict.UNSURE


def test_a_control_machine_without_network_sees_nothing_and_does_nothing() -> None:
    blind = replace(WELL, state="unknown", head=replace(NO_HEAD, health="unreachable"), desired=None)
    assert judge_status(blind).verdict is Verdict.UNSURE


@pytest.mark.parametrize("desired", [None, "down"])
@pytest.mark.parametrize("state", ["degraded", "down", "up"])
def test_what_is_not_meant_to_be_up_is_not_brought_back(state: str, desired: str | None) -> None:
    assert judge_status(replace(broken(state, "worker-stopped"), desired=desired)).verdict is Verdict.ABSENT


def test_a_cluster_that_loads_is_not_broken() -> None:
    assert judge_status(replace(WELL, state="loading")).verdict is Verdict.LOADING


def test_a_dead_worker_is_certain_and_to_blame() -> None:
    seen = judge_status(with_worker(broken("degraded", "worker-stopped"), "right", pid=None, state="stopped"))
    assert (seen.verdict, seen.culprit, seen.is_certain) == (Verdict.BROKEN, "right", True)
    assert seen.cause == "it broke"


def test_a_dead_worker_is_to_blame_for_a_dead_head() -> None:
    dead = replace(broken("degraded", "head-stopped", "worker-stopped"), head=NO_HEAD)
    assert judge_status(with_worker(dead, "right", pid=None, state="stopped")).culprit == "right"


def test_workers_that_idle_without_a_head_are_not_to_blame() -> None:
    headless = replace(broken("degraded", "head-stopped"), head=NO_HEAD)
    for name in ("left", "right"):
        headless = with_worker(headless, name, state="idle")
    assert judge_status(headless).culprit == "head"


def test_after_a_power_loss_of_all_the_head_stands_for_the_whole() -> None:
    off = replace(WELL, state="down", head=NO_HEAD)
    for name in ("left", "right"):
        off = with_worker(off, name, pid=None, state="stopped")
    seen = judge_status(off)
    assert (seen.verdict, seen.culprit, seen.is_certain) == (Verdict.BROKEN, "head", True)


def test_a_suspended_worker_is_to_blame() -> None:
    seen = judge_status(with_worker(broken("wedged", "worker-suspended"), "right", state="suspended"))
    assert (seen.verdict, seen.culprit, seen.is_certain) == (Verdict.BROKEN, "right", True)


@pytest.mark.parametrize("code", ["head-silent", "worker-idle", "worker-foreign"])
def test_what_may_pass_by_itself_must_be_seen_twice(code: str) -> None:
    seen = judge_status(broken("degraded", code))
    assert (seen.verdict, seen.is_certain) == (Verdict.BROKEN, False)
