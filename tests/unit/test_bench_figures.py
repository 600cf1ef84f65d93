"""Figures from timed answers: what a client sees, and what the head says of the same answer."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.bench.figures import OF_ANSWER, Round, load_of, spread_of
from clusterctl.bench.measure import oddities_of
from clusterctl.bench.stream import Answer, Arrival, Timings
from clusterctl.measurements import FIGURES, Load, Settings
from tests.unit.bench_samples import answer

SETTINGS = Settings(prompt_tokens=100, decode_tokens=5, repetitions=1, warmup=0)
STEADY = answer([0.5, 0.6, 0.7, 0.8, 0.9])


def medians(*answers: Answer) -> dict[str, float]:
    load = load_of(len(answers), [Round(answers)])
    return {name: spread.median for name, spread in load.figures.items()}


def test_a_steady_answer_gives_the_rates_of_its_clock() -> None:
    assert medians(STEADY) == {
        "prefill_tok_s": 200.0,
        "decode_tok_s": 10.0,
        "first_token_s": 0.5,
        "inter_token_ms": 100.0,
        "inter_token_p95_ms": 100.0,
        "request_s": 0.9,
        "throughput_tok_s": 5.556,
        "head_prefill_tok_s": 200.0,
        "head_decode_tok_s": 10.0,
    }


def test_every_figure_that_is_computed_is_explained() -> None:
    assert {*OF_ANSWER, "throughput_tok_s"} == set(FIGURES)


def test_one_slow_token_moves_the_95th_percentile_but_not_the_median() -> None:
    slow = medians(answer([0.1, 0.2, 0.3, 0.4, 1.4]))
    assert slow["inter_token_ms"] == 100.0
    assert slow["inter_token_p95_ms"] == 1000.0


def test_an_event_with_several_tokens_counts_as_that_many() -> None:
    drafted = Answer(
        0.0, (Arrival(1.0, 1), Arrival(1.4, 5), Arrival(1.8, 9)), 1.8, Timings(0, 10, 1000, 9, 800, 8, 6)
    )
    figures = medians(drafted)
    assert figures["decode_tok_s"] == 10.0
    assert figures["inter_token_ms"] == 100.0
    assert figures["draft_acceptance"] == 0.75


def test_a_client_that_waits_for_a_slot_counts_its_wait() -> None:
    waiting = answer([1.4, 1.5, 1.6, 1.7, 1.8])
    load = load_of(2, [Round((STEADY, waiting))])
    assert load.figures["first_token_s"].highest == 1.4
    assert load.figures["request_s"].median == 1.35
    assert load.figures["throughput_tok_s"].median == 5.556  # ten tokens in 1.8 s


def test_rounds_give_a_median_and_a_range() -> None:
    rounds = [Round((answer([0.5, 0.5 + gap]),)) for gap in (0.1, 0.2, 0.4)]
    decode = load_of(1, rounds).figures["decode_tok_s"]
    assert (decode.median, decode.lowest, decode.highest, decode.count) == (5.0, 2.5, 10.0, 3)


def test_an_answer_that_came_all_at_once_has_no_decode_rate() -> None:
    figures = medians(answer([0.5, 0.5, 0.5]))
    assert "decode_tok_s" not in figures
    assert figures["first_token_s"] == 0.5


@given(st.lists(st.none() | st.floats(-1e300, 1e300) | st.sampled_from([math.nan, math.inf]), max_size=20))
def test_a_spread_is_ordered_and_finite_whatever_the_samples(samples: list[float | None]) -> None:
    spread = spread_of(samples)
    known = [sample for sample in samples if sample is not None and math.isfinite(sample)]
    if spread is None:
        assert known == []
    else:
        assert spread.lowest <= spread.median <= spread.highest
        assert spread.count == len(known)
        assert spread.lowest == pytest.approx(min(known), rel=1e-3)


def test_an_honest_answer_has_no_oddities() -> None:
    assert list(oddities_of([Round((STEADY,))], load_of(1, [Round((STEADY,))]), SETTINGS)) == []


@pytest.mark.parametrize(
    ("timings", "words"),
    [
        (Timings(40, 60, 500, 5, 400), "reused 40 tokens"),
        (Timings(0, 100, 500, 3, 200), "decoded 3 of 5 tokens"),
        (Timings(0, 100, 500, 5, 380), "decode is 5% below what the head itself says"),
        (Timings(0, 100, 500, 5, 440), "decode is 10% above what the head itself says"),
    ],
)
def test_a_doubtful_answer_is_told(timings: Timings, words: str) -> None:
    rounds = [Round((answer([0.5, 0.6, 0.7, 0.8, 0.9], timings=timings),))]
    [oddity] = oddities_of(rounds, load_of(1, rounds), SETTINGS)
    assert words in oddity


def test_a_difference_to_the_head_is_unknown_without_its_timings() -> None:
    assert Load(1, {}).head_difference is None
