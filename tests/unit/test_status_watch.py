"""A status that stays: without a terminal, a line for each change and none in between."""

from __future__ import annotations

from dataclasses import replace

import pytest

from clusterctl.model import Problem, Severity
from clusterctl.reports import HeadStatus, ProgressReport, StatusReport, TrafficReport
from clusterctl.ui.screen import Screen
from clusterctl.ui.watch import StatusDisplay
from tests.unit.ui_rendering import MARKUP, on_pipe, status_report, unseen

CALM = StatusReport(
    "up",
    HeadStatus("rtx", 4242, health="ok"),
    (),
    TrafficReport(148.2, 11.21, 0, 4),
    progress=ProgressReport("proven", "tokens came 3 s ago"),
)
BUSY = replace(CALM, traffic=TrafficReport(148.2, 11.21, 1, 4))
SLOW = Problem("x", Severity.ERROR, "left: the worker is gone", "look")


def shown(*reports: StatusReport) -> list[str]:
    def show() -> None:
        with StatusDisplay(Screen()) as display:
            for report in reports:
                display(report)

    return on_pipe(show).stdout.splitlines()


def test_a_line_begins_with_the_time_and_the_state() -> None:
    (line,) = shown(CALM)
    time, _, rest = line.partition(" ")
    assert [len(part) for part in time.split(":")] == [2, 2, 2]
    assert rest == "up: 0 of 4 slots busy, decode 11.2 tok/s, prompt 148 tok/s"


@pytest.mark.parametrize(
    "same",
    [
        CALM,
        replace(CALM, traffic=TrafficReport(3.0, 10.9, 0, 4)),
        replace(CALM, progress=ProgressReport("proven", "tokens came 5 s ago")),
        replace(CALM, head=replace(CALM.head, resident_mib=900.0)),
    ],
)
def test_what_only_flickers_is_no_news(same: StatusReport) -> None:
    assert len(shown(CALM, same)) == 1


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (BUSY, "up: 1 of 4 slots busy"),
        (replace(CALM, state="degraded", problems=(SLOW,)), "degraded: left: the worker is gone"),
        (replace(CALM, state="wedged", progress=ProgressReport("stuck", "")), "wedged: 0 of 4"),
        (replace(CALM, head=replace(CALM.head, pid=4243)), "up: "),
        (StatusReport("down", HeadStatus("rtx"), ()), "down"),
    ],
)
def test_every_change_is_a_line(other: StatusReport, said: str) -> None:
    lines = shown(CALM, other, CALM)
    assert len(lines) == 3
    assert said in lines[1]


def test_what_a_node_says_can_do_no_harm() -> None:
    hostile = Problem("x", Severity.ERROR, f"\x1b[2J{MARKUP}\u202e\nsecond", "")
    (line,) = shown(replace(status_report(), problems=(hostile,)))
    assert not unseen(line)
    assert MARKUP in line
