"""`logs --since`: times as people write them, and the lines that are not older."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.cluster.since import lines_since, parse_since
from clusterctl.llama.log_stamp import stamp_s

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=timezone(timedelta(hours=1)))
STARTED = "2026-11-30T10:00:00+00:00"

HEAD = (
    "build: 11434",
    "0.00.372.141 I srv  llama_server: loading model",
    "0.05.000.000 I load_tensors: RPC0 model buffer size = 51.00 MiB",
    "  continued",
    "30.00.000.000 I srv  llama_server: model loaded",
    "90.10.000.000 I slot release: id 0",
)


@pytest.mark.parametrize(
    ("text", "ago"),
    [
        ("10m", timedelta(minutes=10)),
        ("1h30m", timedelta(hours=1, minutes=30)),
        ("2d", timedelta(days=2)),
        ("45s", timedelta(seconds=45)),
    ],
)
def test_a_duration_counts_back_from_now(text: str, ago: timedelta) -> None:
    assert parse_since(text, NOW) == NOW - ago


def test_a_time_without_a_zone_is_one_of_the_users() -> None:
    assert parse_since("2026-11-30T11:30", NOW) == NOW - timedelta(minutes=30)
    assert parse_since("2026-11-30T10:30Z", NOW) == NOW - timedelta(minutes=30)
    assert parse_since("2026-11-30", NOW) == NOW - timedelta(hours=12)


@pytest.mark.parametrize("text", ["", "10", "ten minutes", "10m ago", "m", "-5m", "999999d", "2026-13-01"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises((ValueError, OverflowError)):
        parse_since(text, NOW)


def test_stamps_are_minutes_seconds_and_parts_of_them() -> None:
    assert stamp_s("0.00.372.141 I srv  init") == pytest.approx(0.372141)
    assert stamp_s("75.01.002.003 W slot") == pytest.approx(75 * 60 + 1.002003)
    assert stamp_s("  0.00.372.141 I") is None
    assert stamp_s("10.232.0.11:50052 refused") is None


def test_lines_from_a_time_on_are_shown() -> None:
    at = datetime(2026, 11, 30, 10, 30, tzinfo=UTC)
    assert tuple(lines_since(HEAD, STARTED, at)) == HEAD[4:]


def test_a_line_without_a_stamp_goes_with_the_one_before_it() -> None:
    at = datetime(2026, 11, 30, 10, 0, 5, tzinfo=UTC)
    assert tuple(lines_since(HEAD, STARTED, at)) == HEAD[2:]


def test_a_log_without_stamps_is_shown_whole() -> None:
    worker = ("Starting RPC server v5.0.0", "Accepted client connection")
    assert tuple(lines_since(worker, STARTED, NOW)) == worker


@pytest.mark.parametrize("started_at", ["", "yesterday", "2026-11-30T10:00:00"])
def test_a_start_that_can_not_be_told_hides_nothing(started_at: str) -> None:
    assert tuple(lines_since(HEAD, started_at, NOW)) == HEAD


@given(
    lines=st.lists(st.text(max_size=40)), started_at=st.text(max_size=30), at=st.datetimes(timezones=st.just(UTC))
)
def test_lines_are_never_changed_or_reordered(lines: list[str], started_at: str, at: datetime) -> None:
    shown = iter(lines)
    assert all(line in shown for line in lines_since(lines, started_at, at))


@given(text=st.text(max_size=30))
def test_no_text_is_taken_for_a_time_by_accident(text: str) -> None:
    try:
        moment = parse_since(text, NOW)
    except (ValueError, OverflowError):
        return
    assert moment.tzinfo is not None
