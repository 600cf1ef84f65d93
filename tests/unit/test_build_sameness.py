"""Two programs count as one build only if what they say proves it."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from clusterctl.llama.build import parse_build
from clusterctl.llama.sameness import Sameness, compare_builds
from clusterctl.model import Build
from tests.unit.sample_expectations import NAMES, SAME_BUILDS, WITH_BUILD, expected_build, sample

COMMITS = st.text("0123456789abcdef", min_size=7, max_size=40)
BUILDS = st.builds(
    Build,
    st.none() | st.integers(0, 3) | st.integers(0, 12000),
    st.none() | COMMITS | st.text("0123456789abcdef", max_size=9),
    st.sampled_from((None, "0.4.0", "0.4.0-dev", "0.4.1-dev", "")),
)


def verdict(left: Build | None, right: Build | None) -> Sameness:
    return compare_builds(left, right).verdict


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (Build(8763, "ff5ef8278"), Build(8763, "ff5ef8278"), Sameness.MATCH),
        (Build(10068, "571d0d540"), Build(None, "571d0d5"), Sameness.MATCH),
        (Build(None, "3ce7da2"), Build(None, "3ce7da2", "0.1.0-dev"), Sameness.MATCH),
        (Build(50, "ff5ef8278"), Build(8763, "ff5ef82"), Sameness.MATCH),
        (Build(11434, None, "0.6.0-dev"), Build(11434, None, "0.6.0-dev"), Sameness.MATCH),
        (Build(11434, None, "0.6.0-dev"), Build(11434), Sameness.MATCH),
        (Build(8763, "ff5ef8278"), Build(9002, "457e2288c"), Sameness.MISMATCH),
        (Build(None, "1a68ec937"), Build(None, "dd7cad7"), Sameness.MISMATCH),
        (Build(9193, "1a68ec937"), Build(None, "dd7cad7"), Sameness.MISMATCH),
        (Build(8112), Build(8100, "ff5ef8278"), Sameness.MISMATCH),
        (Build(None, None, "0.4.0"), Build(None, None, "0.4.1-dev"), Sameness.MISMATCH),
        (Build(4740, "368e6546"), Build(4740, "0c39f44d"), Sameness.SAME_TAG_OTHER_SOURCE),
        (Build(11434, None, "0.6.0"), Build(11434, None, "0.5.0"), Sameness.SAME_TAG_OTHER_SOURCE),
        (Build(11434), Build(11434, "ff5ef8278"), Sameness.UNKNOWN),
        (Build(11434), Build(None, "ff5ef8278"), Sameness.UNKNOWN),
        (Build(1), Build(1), Sameness.UNKNOWN),
        (Build(0), Build(0), Sameness.UNKNOWN),
        (Build(None, "ff5ef"), Build(None, "ff5ef"), Sameness.UNKNOWN),
        (Build(None, None, "0.4.0"), Build(None, None, "0.4.0"), Sameness.UNKNOWN),
        (Build(None, None, "0.4.0"), Build(None, None, "0.4.0-dev"), Sameness.UNKNOWN),
        (Build(), Build(), Sameness.UNKNOWN),
    ],
)
def test_builds_are_compared_by_commit_then_by_number(left: Build, right: Build, expected: Sameness) -> None:
    assert verdict(left, right) is expected
    assert verdict(right, left) is expected


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("version: 5882 (Debian)", "version: 5882 (Debian)", Sameness.MATCH),
        ("version: 5882 (Debian)", "version: 5882 (prism-fork)", Sameness.SAME_TAG_OTHER_SOURCE),
        ("version: 5882 (Debian)", "version: 5882 (unknown)", Sameness.MATCH),
        ("version: 5882 (Debian)", "version: 5883 (Debian)", Sameness.MISMATCH),
        ("version: 5882 (b5882)", "version: 5882 (5882)", Sameness.MATCH),
    ],
)
def test_two_packages_of_one_number_are_told_apart_by_who_made_them(
    one: str, other: str, expected: Sameness
) -> None:
    assert verdict(parse_build(one), parse_build(other)) is expected
    assert verdict(parse_build(other), parse_build(one)) is expected


def test_an_unread_build_is_never_the_same() -> None:
    assert verdict(None, None) is Sameness.UNKNOWN
    assert verdict(Build(8763, "ff5ef8278"), None) is Sameness.UNKNOWN


def test_the_reason_names_both_builds() -> None:
    reason = compare_builds(Build(9193, "1a68ec937"), Build(None, "dd7cad7")).reason
    assert reason == "b9193 (1a68ec937) and commit dd7cad7 are different commits"


def test_no_two_samples_of_different_builds_match() -> None:
    pairs = set()
    for left, right in combinations(NAMES, 2):
        if verdict(parse_build(sample(left)), parse_build(sample(right))) is Sameness.MATCH:
            pairs.add(frozenset((left, right)))
    assert pairs == {frozenset(pair) for names in SAME_BUILDS for pair in combinations(names, 2)}


def test_every_sample_with_a_number_or_a_commit_matches_itself() -> None:
    for name in WITH_BUILD:
        build = parse_build(sample(name))
        assert build is not None
        identified = build.number is not None or build.commit is not None
        assert (verdict(build, build) is Sameness.MATCH) is identified


@given(BUILDS, BUILDS)
def test_builds_with_different_commits_never_match(left: Build, right: Build) -> None:
    assume(left.commit and right.commit and left.commit[:7] != right.commit[:7])
    if len(left.commit or "") >= 7 and len(right.commit or "") >= 7:
        assert verdict(left, right) is not Sameness.MATCH


@given(BUILDS, BUILDS)
def test_a_match_rests_on_a_shared_commit_or_a_real_number(left: Build, right: Build) -> None:
    if verdict(left, right) is Sameness.MATCH:
        shared_commit = left.commit and right.commit and left.commit[:7] == right.commit[:7]
        shared_number = left.number is not None and left.number > 1 and left.number == right.number
        assert shared_commit or shared_number


@given(BUILDS, BUILDS)
def test_the_verdict_does_not_depend_on_the_order(left: Build, right: Build) -> None:
    assert verdict(left, right) is verdict(right, left)


@given(
    st.sampled_from([name for name in WITH_BUILD if (build := expected_build(name)) and build.commit]),
    st.integers(0, 6),
    st.sampled_from("0123456789abcdefgxyzG-/ "),
)
def test_one_changed_digit_of_a_commit_never_matches(name: str, position: int, digit: str) -> None:
    build = expected_build(name)
    assert build is not None
    assert build.commit is not None
    assume(build.commit[position] != digit)
    text = sample(name)
    changed = build.commit[:position] + digit + build.commit[position + 1 :]
    body = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    assert verdict(parse_build(body.replace(build.commit, changed)), build) is not Sameness.MATCH


@given(st.sampled_from(NAMES), st.data())
def test_a_sample_with_any_one_character_changed_matches_no_other_build(name: str, data: st.DataObject) -> None:
    text = sample(name)
    position = data.draw(st.integers(0, len(text) - 1))
    changed = text[:position] + data.draw(st.characters()) + text[position + 1 :]
    build = parse_build(changed)
    for other in WITH_BUILD:
        same = other == name or any({other, name} <= names for names in SAME_BUILDS)
        assert same or verdict(build, expected_build(other)) is not Sameness.MATCH
