"""Known-bad builds and settings: which apply, which can't be told, and what a user's own file may get wrong."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterctl.errors import ConfigError
from clusterctl.llama.advisories import (
    AdvisoryFacts,
    load_advisories,
    match_advisories,
    shipped_advisories,
)
from clusterctl.llama.advisory_conditions import CONDITIONS
from clusterctl.llama.wire import RpcProtocol
from clusterctl.model import Severity

SOUND = AdvisoryFacts(
    build_number=11434,
    protocol=RpcProtocol(7, 0, 0),
    uses_rpc=True,
    backends=("cuda", "cuda"),
    architecture="llama",
    settings={
        "cache_type_k": "f16",
        "cache_type_v": "f16",
        "parallel": "1",
        "fit": "off",
        "tensor_split": "16,15",
        "split_mode": "layer",
        "load_mode": "auto",
    },
)


def with_settings(**changes: str | None) -> AdvisoryFacts:
    return replace(SOUND, settings={**SOUND.settings, **changes})


def codes(facts: AdvisoryFacts) -> dict[str, Severity]:
    return {advisory.code: advisory.severity for advisory in match_advisories(shipped_advisories(), facts)}


def judged(when: str, facts: AdvisoryFacts) -> bool | None:
    """Return what one advisory with these conditions comes to: applies, does not, can't be told."""
    text = f"- {{code: x, severity: error, message: m, hint: h, source: s, when: {when}}}"
    found = match_advisories(load_advisories(text), facts)
    return (found[0].severity is Severity.ERROR or None) if found else False


def test_a_current_build_with_plain_settings_is_free_of_advisories() -> None:
    assert codes(SOUND) == {}


def test_a_build_from_before_the_memory_fixes_is_an_error() -> None:
    facts = replace(SOUND, build_number=3560, protocol=None)
    assert codes(facts)["rpc-memory-safety"] is Severity.ERROR
    assert "rpc-memory-safety" not in codes(replace(facts, build_number=3561))
    assert codes(replace(facts, uses_rpc=False)) == {}


@pytest.mark.parametrize("number", [2950, 4907, 8487])
def test_a_build_that_broke_rpc_is_an_error_and_its_neighbours_are_not(number: int) -> None:
    facts = replace(SOUND, protocol=None)
    assert codes(replace(facts, build_number=number))["rpc-broken-build"] is Severity.ERROR
    assert "rpc-broken-build" not in codes(replace(facts, build_number=number + 1))


def test_an_unknown_build_never_passes_in_silence() -> None:
    found = codes(replace(SOUND, build_number=None, protocol=None))
    assert found["rpc-memory-safety"] is Severity.NOTE
    assert found["rpc-broken-build"] is Severity.NOTE
    notes = match_advisories(shipped_advisories(), replace(SOUND, build_number=None, protocol=None))
    assert all(note.message.startswith("can't tell") for note in notes)


def test_the_protocol_of_a_worker_bounds_a_build_without_a_number() -> None:
    assert codes(replace(SOUND, build_number=None, protocol=RpcProtocol(4, 0, 3))) == {}
    assert (
        judged("{build: {in: [10100]}}", replace(SOUND, build_number=None, protocol=RpcProtocol(4, 0, 3))) is None
    )


def test_deepseek_v4_needs_a_protocol_that_can_clear_its_cache() -> None:
    facts = replace(SOUND, architecture="deepseek4", build_number=None, protocol=RpcProtocol(4, 0, 3))
    assert codes(facts) == {"memset-over-rpc": Severity.ERROR}
    assert codes(replace(facts, protocol=RpcProtocol(5, 1, 0))) == {}
    assert codes(replace(facts, architecture=None))["memset-over-rpc"] is Severity.NOTE


@pytest.mark.parametrize(
    ("settings_", "code"),
    [
        ({"draft_model": "/d.gguf", "draft_device": "RPC0"}, "draft-on-rpc-device"),
        ({"draft_model": "/d.gguf", "draft_device": "CUDA0,RPC1"}, "draft-on-rpc-device"),
        ({"draft_model": "/d.gguf"}, "draft-device-unset"),
        ({"draft_type": "draft-mtp"}, "mtp-over-rpc"),
        ({"fit": "on"}, "fit-overrides-split"),
        ({"split_mode": "row"}, "split-mode-over-rpc"),
        ({"cache_type_k": "q5_0", "cache_type_v": "q5_0"}, "kv-type-over-rpc"),
        ({"cache_type_k": "q8_0", "cache_type_v": "q4_0"}, "kv-types-unequal-over-rpc"),
    ],
)
def test_a_setting_known_to_fail_over_rpc_is_told(settings_: Mapping[str, str], code: str) -> None:
    assert list(codes(with_settings(**settings_))) == [code]


def test_a_draft_model_on_the_heads_own_device_is_fine() -> None:
    assert codes(with_settings(draft_model="/d.gguf", draft_device="CUDA0")) == {}


def test_a_quantised_cache_is_doubtful_only_where_backends_differ() -> None:
    facts = with_settings(cache_type_k="q8_0", cache_type_v="q8_0")
    assert codes(facts) == {}
    assert list(codes(replace(facts, backends=("cuda", "rocm")))) == ["kv-quantised-on-mixed-backends"]
    assert codes(replace(facts, backends=("cuda", None)))["kv-quantised-on-mixed-backends"] is Severity.NOTE


def test_phi_with_several_slots_and_a_quantised_cache_is_told() -> None:
    facts = replace(with_settings(cache_type_k="q4_0", cache_type_v="q4_0", parallel="2"), architecture="phi3")
    assert list(codes(facts)) == ["phi-parallel-quantised-kv"]


@pytest.mark.parametrize(
    ("when", "number", "expected"),
    [
        ("{build: {from: 10, to: 20}}", 10, True),
        ("{build: {from: 10, to: 20}}", 20, True),
        ("{build: {from: 10, to: 20}}", 21, False),
        ("{build: {before: 20}}", 20, False),
        ("{build: {before: 20}}", None, None),
        ("{build: {in: [5]}}", None, None),
        ("{protocol: {before: 5.0.0}}", 10156, True),
        ("{protocol: {before: 5.0.0}}", 10170, None),
        ("{protocol: {before: 5.0.0}}", 10189, False),
        ("{protocol: {before: 5.0.0}}", None, None),
        ("{build: {before: 20}, uses_rpc: false}", None, False),
    ],
)
def test_conditions_on_builds_are_true_false_or_unknown(
    when: str, number: int | None, expected: bool | None
) -> None:
    assert judged(when, replace(SOUND, build_number=number, protocol=None)) is expected


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        ("{backend: [rocm]}", None),
        ("{backend: [cuda]}", True),
        ("{backends_differ: true}", None),
        ("{settings: {a: [x]}}", True),
        ("{settings: {a: {not_in: [x]}}}", False),
        ("{settings: {b: [x]}}", None),
        ("{settings: {absent: {not_in: [x]}}}", False),
        ("{settings: {absent: {set: false}}}", True),
        ("{settings_differ: [a, b]}", None),
        ("{settings_differ: [a, absent]}", True),
    ],
)
def test_an_unknown_value_makes_a_condition_unknown(when: str, expected: bool | None) -> None:
    facts = replace(SOUND, backends=("cuda", None), settings={"a": "x", "b": None})
    assert judged(when, facts) is expected


def test_every_fault_of_a_users_file_is_told_with_its_place() -> None:
    text = (
        "- code: mine\n"
        "  severity: grave\n"
        "  message: [a]\n"
        "  hnt: h\n"
        "  source: s\n"
        "  when: {build: {form: 2}, uses_rpc: 3, color: red}\n"
        "- 5\n"
    )
    with pytest.raises(ConfigError) as caught:
        load_advisories(text, file="mine.yaml")
    assert [(fault.line, fault.column, fault.path) for fault in caught.value.faults] == [
        (1, 3, "[0]"),
        (2, 13, "[0].severity"),
        (3, 12, "[0].message"),
        (4, 8, "[0]"),
        (6, 17, "[0].when.build"),
        (6, 38, "[0].when.uses_rpc"),
        (6, 48, "[0].when"),
        (7, 3, "[1]"),
    ]
    assert "mine.yaml:2:13: [0].severity: must be one of error, warning, note" in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["[", "a: 1", "5", "- &a [*a]", "- {? [1]: 2}", "- !!python/object:os.system x", "[" * 3000, "- \x00",
     "- <<: 4", "- <<: {code: 1}", "- when: {1: 2}", "2020-99-99", "- a\n---\n- b"],
)  # fmt: skip
def test_a_file_that_is_no_list_of_advisories_is_refused_without_a_crash(text: str) -> None:
    with pytest.raises(ConfigError):
        load_advisories(text)


def test_an_empty_file_adds_nothing() -> None:
    assert load_advisories("") == ()


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="-{}[]:,&*!? \nabwhen01'\"", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(ConfigError):
        assert load_advisories(text) == ()


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 12000) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["from", "to", "before", "in", "set", "matches", "a"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(CONDITIONS)), JSON_VALUES, min_size=1, max_size=3))
def test_any_condition_is_judged_or_refused(when: dict[str, object]) -> None:
    row = {"code": "x", "severity": "note", "message": "m", "hint": "h", "source": "s", "when": when}
    with suppress(ConfigError):
        found = load_advisories(yaml.safe_dump([row]))
        assert len(match_advisories(found, SOUND)) <= 1
        assert len(match_advisories(found, replace(SOUND, build_number=None, protocol=None))) <= 1


def test_an_advisory_shows_as_a_problem_with_its_source() -> None:
    (advisory,) = match_advisories(shipped_advisories(), with_settings(fit="on"))
    problem = advisory.as_problem()
    assert (problem.code, problem.severity) == ("fit-overrides-split", Severity.ERROR)
    assert "issues/18175" in problem.hint
