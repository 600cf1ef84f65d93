"""What llama-server tells of its work, from recorded answers of real heads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.cluster.head_api import traffic_of
from clusterctl.llama.serving import Pulse, Slot, decode_rate, has_advanced, parse_metrics, parse_slots

SAMPLES = Path(__file__).parent.parent / "data" / "serving"
BUILDS = ("b10068", "b10434")
every_build = pytest.mark.parametrize("build", BUILDS)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
slot_rows = st.dictionaries(
    st.sampled_from(["id", "is_processing", "id_task", "n_prompt_tokens_processed", "next_token"]), json_values
)


def recorded(name: str, build: str, at_s: float = 0.0) -> Pulse:
    slots = parse_slots(json.loads((SAMPLES / f"slots_{name}.{build}.json").read_text()))
    metrics = SAMPLES / f"metrics_{name}.{build}.txt"
    return Pulse(at_s, True, slots, parse_metrics(metrics.read_text()) if metrics.exists() else {})


def slots_only(pulse: Pulse) -> Pulse:
    return Pulse(pulse.at_s, True, pulse.slots)


def metrics_only(pulse: Pulse) -> Pulse:
    return Pulse(pulse.at_s, True, None, pulse.metrics)


@every_build
def test_a_fresh_slot_is_idle_and_holds_nothing(build: str) -> None:
    fresh = recorded("fresh", build)
    assert fresh.slots == (Slot(0, is_busy=False),)
    assert fresh.is_idle is True


@every_build
def test_a_busy_slot_tells_its_task_and_its_tokens(build: str) -> None:
    busy = recorded("busy", build)
    assert busy.slots is not None
    (slot,) = busy.slots
    assert (slot.is_busy, slot.task, slot.prompt_tokens) == (True, 1, 4)
    assert slot.decoded_tokens in (30, 59)
    assert busy.is_idle is False
    assert metrics_only(busy).is_idle is False


@every_build
def test_progress_shows_in_the_slots_and_in_the_metrics_alike(build: str) -> None:
    before, after = recorded("busy", build), recorded("busy_later", build)
    for part in (slots_only, metrics_only):
        assert has_advanced(part(before), part(after))
        assert not has_advanced(part(after), part(after))
    assert has_advanced(slots_only(recorded("fresh", build)), slots_only(before))


@every_build
def test_the_speed_between_two_looks_is_that_of_the_tokens_between_them(build: str) -> None:
    before, after = recorded("busy", build, 10.0), recorded("busy_later", build, 12.0)
    assert decode_rate(before, after) == pytest.approx((56 - 30) / 2 if build == "b10068" else (87 - 59) / 2)
    assert traffic_of(after, before).decode_tok_s == decode_rate(before, after)
    assert decode_rate(after, after) is None
    assert decode_rate(metrics_only(before), after) is None


def test_a_new_request_counts_from_its_beginning() -> None:
    before = Pulse(0, True, (Slot(0, True, task=1, decoded_tokens=500),))
    after = Pulse(2, True, (Slot(0, True, task=2, decoded_tokens=30),))
    assert decode_rate(before, after) == 15.0


def test_requests_that_wait_make_a_head_busy() -> None:
    idle_slots = (Slot(0, is_busy=False),)
    assert Pulse(0, True, idle_slots, {"requests_deferred": 1.0}).is_idle is False


def test_a_head_that_tells_nothing_is_neither_idle_nor_busy() -> None:
    silent = Pulse(0, True)
    assert (silent.is_idle, silent.tells) == (None, False)
    assert not has_advanced(silent, silent)


def test_metrics_that_are_no_numbers_are_left_out() -> None:
    text = "llamacpp:a inf\nllamacpp:b nan\nllamacpp:c x\nllamacpp:d 1e3\nother:e 1\n# llamacpp:f 1\n"
    assert parse_metrics(text) == {"d": 1000.0}


@pytest.mark.parametrize("document", [None, {}, "x", 3, {"error": {"code": 401}}])
def test_what_is_no_list_of_slots_tells_nothing(document: object) -> None:
    assert parse_slots(document) is None


@given(st.lists(slot_rows | json_values))
def test_slots_of_any_shape_are_read_without_a_crash(document: list[object]) -> None:
    slots = parse_slots(document)
    assert slots is not None
    assert all(isinstance(slot.number, int) and isinstance(slot.decoded_tokens, int) for slot in slots)
    pulse = Pulse(0, True, slots)
    assert pulse.is_idle is not None
    assert not has_advanced(pulse, pulse) or len({slot.number for slot in slots}) < len(slots)


@given(st.text())
def test_metrics_of_any_text_are_read_without_a_crash(text: str) -> None:
    assert all(name for name in parse_metrics(text))
