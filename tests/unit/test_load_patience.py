"""How long a load may take."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.cluster.patience import STEP_BYTES, Limits, Patience, load_deadline_s

GIB = 1024**3


def load(limits: Limits, *seen: tuple[float, int | None, str]) -> Patience:
    """A load that began at 0, and what was seen of it: time, bytes moved, last line."""
    patience = Patience(limits, 0, 0)
    for now_s, moved_bytes, line in seen:
        patience = patience.seeing(now_s, moved_bytes, line)
    return patience


def test_bytes_that_move_extend_the_deadline() -> None:
    moving = [(10.0 * step, step * GIB, "loading tensors") for step in range(100)]
    assert load(Limits(deadline_s=60, stall_s=30), *moving).refusal(999) is None


def test_a_slow_link_adds_up_to_progress() -> None:
    creeping = [(float(second), second * STEP_BYTES // 20, "loading tensors") for second in range(600)]
    assert load(Limits(deadline_s=60, stall_s=30), *creeping).refusal(600) is None


def test_the_noise_of_an_idle_program_is_no_progress() -> None:
    idle = [(float(second), GIB + second % 2 * 40_960, "loading tensors") for second in range(400)]
    refusal = load(Limits(deadline_s=3600, stall_s=300), *idle).refusal(400)
    assert refusal == "no progress for 300 s at: loading tensors"


def test_a_new_log_line_is_progress_where_bytes_can_not_be_seen() -> None:
    talking = [(10.0 * step, None, f"tensor {step}") for step in range(20)]
    patience = load(Limits(deadline_s=60, stall_s=30), *talking)
    assert patience.refusal(200) is None
    assert patience.refusal(220) == "no progress for 30 s at: tensor 19"


def test_where_nothing_can_be_seen_the_deadline_is_waited_for() -> None:
    patience = load(Limits(deadline_s=600, stall_s=30), (1, None, "loading"), (500, None, "loading"))
    assert patience.refusal(599) is None
    assert patience.refusal(600) == "no progress for 30 s at: loading"


def test_a_known_figure_that_is_missing_once_is_no_progress() -> None:
    limits = Limits(deadline_s=600, stall_s=30)
    patience = load(limits, (1, GIB, "loading"), (20, None, "loading"), (25, GIB, "loading"))
    assert patience.refusal(31) == "no progress for 30 s at: loading"


def test_a_hard_limit_ends_a_load_that_moves() -> None:
    moving = [(float(second), second * GIB, "loading") for second in range(20)]
    refusal = load(Limits(deadline_s=600, hard_s=10), *moving).refusal(10)
    assert refusal == "the head does not serve after 10 s; last log line: loading"


@given(model_bytes=st.integers(0, 10**13), more_bytes=st.integers(0, 10**13))
def test_a_larger_model_is_given_no_less_time(model_bytes: int, more_bytes: int) -> None:
    assert load_deadline_s(model_bytes + more_bytes, None) >= load_deadline_s(model_bytes, None)


def test_a_published_slow_load_is_within_its_deadline() -> None:
    # 75 GB over 100 Mbit/s, as in llama.cpp issue 27653.
    assert load_deadline_s(75_000_000_000, None) > 75_000_000_000 * 8 / 100e6


@pytest.mark.parametrize("expected_s", [0.0, 30.0, 4000.0])
def test_a_known_link_speed_decides_the_deadline(expected_s: float) -> None:
    assert load_deadline_s(100 * GIB, expected_s) >= 2 * expected_s
    assert load_deadline_s(100 * GIB, expected_s) == load_deadline_s(0, expected_s)
