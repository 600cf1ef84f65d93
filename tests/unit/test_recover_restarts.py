"""How often a cluster is brought back: budget, back-off, and the node that breaks again at once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.cluster.restarts import LONGEST_PAUSE_S, Budget, History, Restart

BUDGET = Budget(restarts=5, window_s=3600, fast_s=60)
LOAD_S = 300


def history(*restarts: tuple[float, str], load_s: float = LOAD_S) -> History:
    """Restarts that took `load_s` each, by the time at which the cluster broke and who broke."""
    return History(tuple(Restart(broke_s, broke_s + load_s, culprit) for broke_s, culprit in restarts))


def test_the_first_restart_comes_at_once() -> None:
    assert History().refusal(BUDGET, 0, "left") is None
    assert History().pause_s(BUDGET, 0) == 0


def test_a_worker_that_dies_fast_twice_ends_it_however_long_the_model_loads() -> None:
    once = history((0, "left"))
    assert once.refusal(BUDGET, LOAD_S + 10, "left") is None
    twice = once.with_restart(Restart(LOAD_S + 10, 2 * LOAD_S + 10, "left"))
    assert twice.refusal(BUDGET, 2 * LOAD_S + 20, "left") == "left broke twice within 60 s of a restart"


def test_it_does_not_matter_what_broke_first() -> None:
    restarts = history((0, "right"), (LOAD_S + 10, "left"))
    assert restarts.refusal(BUDGET, 2 * LOAD_S + 20, "left") is not None


@pytest.mark.parametrize(
    ("restarts", "broke_s", "culprit"),
    [
        (history((0, "left"), (LOAD_S + 10, "left")), 2 * LOAD_S + 20, "right"),
        (history((0, "left"), (LOAD_S + 10, "right")), 2 * LOAD_S + 20, "left"),
        (history((0, "left"), (LOAD_S + 61, "left")), 2 * LOAD_S + 70, "left"),
        (history((0, "left"), (LOAD_S + 10, "left")), 2 * LOAD_S + 71, "left"),
    ],
    ids=["another now", "another before", "slow before", "slow now"],
)
def test_only_the_same_worker_fast_both_times_ends_it(restarts: History, broke_s: float, culprit: str) -> None:
    assert restarts.refusal(BUDGET, broke_s, culprit) is None


def test_the_budget_is_what_was_spent_within_the_window() -> None:
    spent = history(*((number * 600.0, f"node{number}") for number in range(5)))
    assert spent.refusal(BUDGET, 3000, "left") == "brought back 5 times within 60 min already"
    assert spent.refusal(BUDGET, LOAD_S + BUDGET.window_s, "left") is None


def test_pauses_double_up_to_a_minute() -> None:
    pauses = [history(*[(0.0, "left")] * count, load_s=0).pause_s(BUDGET, 1) for count in range(9)]
    assert pauses == [0, 1, 2, 4, 8, 16, 32, 60, 60]


@given(
    st.lists(st.floats(0, 1e6), max_size=40).map(sorted),
    st.floats(0, 1e6),
    st.sampled_from(["left", "right"]),
)
def test_within_any_window_there_are_never_more_restarts_than_the_budget(
    times: list[float], load_s: float, culprit: str
) -> None:
    past, began_s = History(), 0.0
    for broke_s in times:
        if broke_s >= began_s and past.refusal(BUDGET, broke_s, culprit) is None:
            assert 0 <= past.pause_s(BUDGET, broke_s) <= LONGEST_PAUSE_S
            began_s = broke_s + load_s
            past = past.with_restart(Restart(broke_s, began_s, culprit))
    ends = [restart.ended_s for restart in past.restarts]
    for end in ends:
        assert sum(end - BUDGET.window_s < other <= end for other in ends) <= BUDGET.restarts
