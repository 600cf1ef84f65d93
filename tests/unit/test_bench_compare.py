"""Runs beside each other: a difference counts only where the ranges do not touch."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.bench.compare import compare_all, compare_arms, compare_runs, compare_targets, find_bases
from clusterctl.errors import UsageError
from clusterctl.measurements import FIGURES, Spread
from tests.unit.bench_samples import run, spread

medians = st.floats(0.01, 10_000)
parts = st.floats(0, 0.5)


def verdict(now: Spread, base: Spread, figure: str = "decode_tok_s") -> str:
    [change] = compare_runs(run({1: {figure: now}}), run({1: {figure: base}}), "base").changes
    return change.verdict


def test_what_lies_within_the_spread_is_no_difference() -> None:
    assert verdict(spread(20.0, part=0.03), spread(20.5, part=0.03)) == "within the spread"


@pytest.mark.parametrize(
    ("figure", "expected"), [("decode_tok_s", "better"), ("throughput_tok_s", "better"), ("request_s", "worse")]
)
def test_more_is_better_for_rates_and_worse_for_times(figure: str, expected: str) -> None:
    assert verdict(spread(30.0), spread(20.0), figure) == expected


def test_one_repetition_proves_nothing() -> None:
    assert verdict(spread(30.0, count=1), spread(20.0)) == "too few samples"


@given(medians, parts, medians, parts)
def test_what_is_better_one_way_is_worse_the_other(one: float, a: float, other: float, b: float) -> None:
    mirrored = {"better": "worse", "worse": "better", "within the spread": "within the spread"}
    forth = verdict(spread(one, part=a), spread(other, part=b))
    assert verdict(spread(other, part=b), spread(one, part=a)) == mirrored[forth]


def test_runs_are_compared_where_they_had_as_many_clients() -> None:
    figures = {"decode_tok_s": spread(20.0)}
    comparison = compare_runs(run({1: figures, 4: figures}), run({2: figures, 4: figures}), "base")
    assert [change.concurrency for change in comparison.changes] == [4]


def test_what_was_not_the_same_is_told() -> None:
    other = run(build="b10434 (7e4c0a9)")
    [difference] = compare_runs(run(), other, "base").differences
    assert difference == "build: b11434 (7e4c0a9), against b10434 (7e4c0a9)"


def test_runs_without_a_common_number_of_clients_say_so() -> None:
    figures = {"decode_tok_s": spread(20.0)}
    comparison = compare_runs(run({1: figures}), run({2: figures}), "base")
    assert comparison.changes == ()
    assert comparison.differences == ("the runs have no number of clients in common",)


def test_a_published_figure_is_met_if_it_lies_in_the_range() -> None:
    measured = run({1: {"decode_tok_s": spread(20.0), "prefill_tok_s": spread(100.0)}})
    comparison = compare_targets(measured, {"decode_tok_s": 20.2, "prefill_tok_s": 140.0}, "recipe")
    assert {change.figure: change.verdict for change in comparison.changes} == {
        "decode_tok_s": "within the spread",
        "prefill_tok_s": "worse",
    }


def test_a_published_figure_that_is_not_measured_is_named() -> None:
    comparison = compare_targets(run(), {"watts": 300.0}, "recipe")
    assert comparison.differences == ("watts is not measured",)


def test_published_figures_need_a_single_client() -> None:
    comparison = compare_targets(run({4: {"decode_tok_s": spread(20.0)}}), {"decode_tok_s": 20.0}, "recipe")
    assert comparison.changes == ()
    assert "--concurrency 1" in comparison.differences[0]


def test_a_recipe_without_figures_says_so() -> None:
    assert compare_targets(run(), {}, "recipe").differences == ("there is no figure to compare with",)


def test_the_newest_run_that_is_meant_is_found() -> None:
    kept = [run(name="a", build="1"), run(name="b", build="2"), run(arm="alone"), run(recipe="other")]
    bases = find_bases(kept, ["last", "a", "expect", "estimate"], "qwen3")
    assert {word: base.build for word, base in bases.items()} == {"last": "2", "a": "1"}


def test_a_name_that_was_never_kept_lists_those_that_were() -> None:
    with pytest.raises(UsageError, match="no run named `c`") as caught:
        find_bases([run(name="a"), run(name="b"), run(name="a")], ["c"], "qwen3")
    assert "known names are: a, b;" in (caught.value.hint or "")
    with pytest.raises(UsageError) as caught:
        find_bases([], ["c"], "qwen3")
    assert "known names are: none yet;" in (caught.value.hint or "")


def test_the_first_run_has_no_last_one() -> None:
    with pytest.raises(UsageError, match="no earlier run"):
        find_bases([], ["last"], None)


def test_the_cluster_is_compared_with_every_other_arm() -> None:
    runs = [run(arm="alone"), run(arm="alone, 4 slots"), run(), run(arm="llama-bench")]
    titles = [(comparison.run, comparison.base) for comparison in compare_arms(runs)]
    assert titles == [("cluster", "alone"), ("cluster", "alone, 4 slots"), ("cluster", "llama-bench")]


def test_everything_asked_for_is_compared_in_that_order() -> None:
    comparisons = list(compare_all(run(), ["expect", "a"], {"a": run(name="a")}, {"decode_tok_s": 20.0}))
    assert [len(comparison.changes) for comparison in comparisons] == [1, 1]
    assert comparisons[1].base.startswith("a of 2026-11-30")


def test_the_heads_own_figures_are_not_compared() -> None:
    figures = dict.fromkeys(FIGURES, spread(20.0))
    changes = compare_runs(run({1: figures}), run({1: figures}), "base").changes
    assert not any(change.figure.startswith("head_") for change in changes)
