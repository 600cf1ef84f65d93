"""Sense is told from garbage by probabilities, and what can't be told is never called sane."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.cluster.references import keep_reference, read_reference
from clusterctl.llama.sense import Verdict, expected_logprob, judge, questions

# SmolLM2 135M Q4_1 on one node and b10434: counting from 12 to 17, a digit or a blank a token.
SOUND = (-0.25, -0.03, -0.0, -0.25, -0.11, -0.02, -0.2, -0.05, -0.01, -0.14, -0.05, -0.0, -0.24, -0.08, -0.01)
# The same with one byte in 5000 of the weights spoilt on the way to the worker; its answers look fluent.
SPOILT = (-6.12, -0.03, -0.0, -6.17, -0.41, -0.02, -6.6, -0.11, -0.01, -5.87, -0.12, -0.0, -6.11, -0.23, -0.0)
# One byte in 997: it answers in words that mean nothing.
GARBAGE = (-31.69, -9.06, -33.69, -44.13, -9.13, -33.45, -26.09, -9.09, -33.47, -22.24, -9.06, -35.25, -41.88)

numbers = st.floats(-60, 0)


def moved(logprobs: Sequence[float], by: float) -> tuple[float, ...]:
    return tuple(number - by for number in logprobs)


def test_a_model_that_continues_what_it_must_know_is_sane() -> None:
    sense = judge(SOUND)
    assert sense.verdict is Verdict.SANE
    assert sense.logprobs == SOUND


def test_garbage_is_broken() -> None:
    assert judge(GARBAGE).verdict is Verdict.BROKEN


def test_a_fluent_head_that_fails_at_some_tokens_is_not_sane() -> None:
    assert judge(SPOILT).verdict is Verdict.DOUBTFUL


def test_a_reference_finds_what_looks_well_by_itself() -> None:
    assert judge(SPOILT, SOUND).verdict is Verdict.BROKEN
    slightly = (*SOUND[:-1], SOUND[-1] - 1.5)
    assert judge(slightly).verdict is Verdict.SANE
    assert judge(slightly, SOUND).verdict is Verdict.BROKEN


def test_other_devices_compute_a_little_differently() -> None:
    sense = judge(moved(SOUND, 0.02), SOUND)
    assert sense.verdict is Verdict.SANE
    assert "0.0200" in sense.detail


def test_the_same_numbers_are_sane_whatever_they_are() -> None:
    poor = moved(SOUND, 2.0)
    assert judge(poor).verdict is Verdict.DOUBTFUL
    assert judge(poor, poor).verdict is Verdict.SANE


def test_a_reference_of_other_tokens_does_not_count() -> None:
    assert judge(SOUND, SOUND[:-1]) == judge(SOUND)


def test_a_probability_that_is_no_number_is_broken() -> None:
    assert judge([*SOUND, None]).verdict is Verdict.BROKEN
    assert judge([None]).verdict is Verdict.BROKEN


def test_without_probabilities_nothing_is_sane() -> None:
    sense = judge([])
    assert (sense.verdict, sense.logprobs) == (Verdict.DOUBTFUL, ())


@given(st.lists(numbers, min_size=1, max_size=40), numbers)
def test_better_probabilities_never_get_a_worse_verdict(logprobs: list[float], better_by: float) -> None:
    gravity = [Verdict.SANE, Verdict.DOUBTFUL, Verdict.BROKEN]
    better = [min(0.0, number - better_by) for number in logprobs]
    assert gravity.index(judge(better).verdict) <= gravity.index(judge(logprobs).verdict)


def test_a_token_among_the_candidates_has_its_own_probability() -> None:
    assert expected_logprob({5: -0.1, 7: -3.0}, 7) == -3.0


def test_a_token_that_is_no_candidate_is_at_most_as_likely_as_the_last_of_them() -> None:
    assert expected_logprob({5: -0.1, 7: -3.0}, 9) == -3.0
    assert expected_logprob({5: -1e38, 7: -2e38}, 9) == -30.0


@pytest.mark.parametrize("candidates", [{}, {5: None}, {5: -0.1, 7: None}, {5: float("nan")}])
def test_candidates_without_numbers_tell_nothing(candidates: dict[int, float | None]) -> None:
    assert expected_logprob(candidates, 5) is None


def test_what_is_asked_fits_into_a_small_context() -> None:
    for passage in questions().passages:
        assert passage.given
        assert passage.expected
        assert len(passage.given + passage.expected) < 256


def test_a_reference_is_read_as_it_was_kept(tmp_path: Path) -> None:
    environment = {"XDG_STATE_HOME": str(tmp_path)}
    assert read_reference("key", environment) is None
    keep_reference("key", SOUND, environment)
    keep_reference("key", SPOILT, environment)
    keep_reference("other", SOUND, environment)
    assert read_reference("key", environment) == SPOILT
    assert sorted(path.name for path in (tmp_path / "clusterctl" / "sense").iterdir()) == [
        "key.json",
        "other.json",
    ]


@pytest.mark.parametrize("text", ["", "[]", '{"logprobs": 3}', '{"logprobs": ["x"]}', "\udcff"])
def test_a_damaged_reference_is_none(tmp_path: Path, text: str) -> None:
    environment = {"XDG_STATE_HOME": str(tmp_path)}
    keep_reference("key", SOUND, environment)
    (tmp_path / "clusterctl" / "sense" / "key.json").write_text(text, "utf-8", "surrogateescape")
    assert read_reference("key", environment) is None


def test_where_nothing_can_be_written_no_reference_is_kept(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    environment = {"XDG_STATE_HOME": str(tmp_path / "file")}
    keep_reference("key", SOUND, environment)
    assert read_reference("key", environment) is None
