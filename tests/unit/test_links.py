"""Links as the head's script tells of them: what was measured, what was not, and why."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.cluster.link import Link, link_problems, links_of
from clusterctl.model import Severity
from clusterctl.remote.command import Output

NODES = ("left", "right")


def told(text: str, *, status: int = 0, stderr: str = "", **silent: str) -> dict[str, Link]:
    return links_of(Output(status, text.encode(), stderr), NODES, silent)


def problems(link: Link) -> list[tuple[str, Severity, str]]:
    return [(p.code, p.severity, p.message) for p in link_problems(link, "10.0.0.2:50052")]


def test_samples_are_read() -> None:
    links = told("left 0.125 940.500\nright 3.000 94.000\n")
    assert links == {"left": Link(True, 0.125, 940.5), "right": Link(True, 3.0, 94.0)}
    assert problems(links["left"]) == []
    assert [code for code, *_ in problems(links["right"])] == ["slow-link", "far-away"]


def test_a_link_that_does_not_answer_is_an_error() -> None:
    links = told("left - no answer\nright 0.125 940.500\n")
    assert links["left"] == Link(False, fault="no answer")
    (problem,) = problems(links["left"])
    assert problem[:2] == ("head-cannot-reach", Severity.ERROR)


def test_a_refusal_while_the_worker_listens_came_from_a_firewall() -> None:
    link = told("left - Connection refused\nright 0.125 940.500\n")["left"]
    assert link.is_reachable is False
    ((code, severity, message),) = problems(link)
    assert (code, severity) == ("head-cannot-reach", Severity.ERROR)
    assert "Connection refused, although the worker listened" in message


@pytest.mark.parametrize("answer", ["Connection refused", "connected, but nothing came"])
def test_an_answer_where_no_worker_listened_tells_nothing(answer: str) -> None:
    link = told(f"left - {answer}\nright 0.125 940.500\n", left="bind: Address already in use")["left"]
    assert link == Link(None, fault="bind: Address already in use")


def test_silence_is_an_error_whether_the_worker_listened_or_not() -> None:
    assert told("left - no answer\n", left="it has no perl")["left"].is_reachable is False


def test_a_sample_of_whatever_else_listened_there_does_not_count() -> None:
    assert told("left 0.125 940.500\n", left="bind: Address already in use")["left"].mbit_s is None


@pytest.mark.parametrize(
    ("status", "stderr", "reason"),
    [
        (3, "", "the head has no perl to measure with"),
        (2, "Can't locate Time/HiRes.pm in @INC at - line 3.\nBEGIN failed\n", "Can't locate Time/HiRes.pm"),
        (137, "", "exit status 137"),
    ],
)
def test_a_head_that_measured_nothing_says_so_of_every_link(status: int, stderr: str, reason: str) -> None:
    links = told("", status=status, stderr=stderr)
    assert set(links) == set(NODES)
    for link in links.values():
        ((code, _, message),) = problems(link)
        assert code == "link-not-measured"
        assert reason in message


@given(st.text() | st.from_regex(r"(left|right) (-|[0-9.naif]+) [0-9.naif]+\n", fullmatch=True))
def test_any_text_is_read_without_a_crash_and_nothing_unknown_passes(text: str) -> None:
    for link in told(text).values():
        assert problems(link) or (link.mbit_s and link.round_trip_ms is not None)
