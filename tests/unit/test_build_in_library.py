"""A worker's build is proven by the commit inside its library, and by nothing that only looks like one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.llama.library_commit import commit_candidates, library_commit_verdict
from clusterctl.llama.sameness import Sameness
from clusterctl.model import Build
from tests.unit.sample_expectations import WITH_COMMITS, expected_commits, sample

HEXADECIMAL = "0123456789abcdef"


def verdict(build: Build | None, text: str) -> Sameness:
    return library_commit_verdict(build, commit_candidates(text)).verdict


@pytest.mark.parametrize("name", WITH_COMMITS)
def test_the_commit_is_found_among_the_tables_of_a_real_library(name: str) -> None:
    assert commit_candidates(sample(name)) == expected_commits(name)


def test_each_real_library_matches_its_own_build_only() -> None:
    for name in WITH_COMMITS:
        for other in WITH_COMMITS:
            (commit,) = expected_commits(other)
            expected = Sameness.MATCH if name == other else Sameness.MISMATCH
            assert verdict(Build(None, commit), sample(name)) is expected


@pytest.mark.parametrize(
    ("build", "text", "expected"),
    [
        (Build(10068, "571d0d540"), "571d0d5", Sameness.MATCH),
        (Build(None, "571d0d5"), "571d0d540a0b0c0d0e0f0a0b0c0d0e0f0a0b0c0d", Sameness.MATCH),
        (Build(None, "571d0d5"), "571d0d6\n0000000", Sameness.MISMATCH),
        (Build(None, "571d0d5"), "1812433253\neaedeeefe\n3333333", Sameness.UNKNOWN),
        (Build(None, "571d0d5"), "", Sameness.UNKNOWN),
        (Build(None, "571d0d5"), "571d0d5-dirty", Sameness.UNKNOWN),
        (Build(None, "1812433"), "1812433253", Sameness.UNKNOWN),
        (Build(None, "3333333"), "3333333", Sameness.UNKNOWN),
        (Build(None, "eaedeee"), "eaedeeefe", Sameness.UNKNOWN),
        (Build(None, "0123456789ab"), "0123456789abcdef", Sameness.UNKNOWN),
        (Build(11434), "7e4c0a9", Sameness.UNKNOWN),
        (None, "7e4c0a9", Sameness.UNKNOWN),
    ],
)
def test_only_the_commit_itself_matches(build: Build | None, text: str, expected: Sameness) -> None:
    assert verdict(build, text) is expected


def test_the_reason_names_the_commit_that_was_found_instead() -> None:
    reason = library_commit_verdict(Build(None, "571d0d5"), commit_candidates("1812433253\n3ce7da2")).reason
    assert reason == "the worker's library names commit 3ce7da2, not 571d0d5"


@given(st.text(HEXADECIMAL, min_size=7, max_size=40), st.lists(st.text(HEXADECIMAL + "g \n", max_size=50)))
def test_a_match_needs_seven_shared_digits(commit: str, words: list[str]) -> None:
    if verdict(Build(None, commit), "\n".join(words)) is Sameness.MATCH:
        assert any(word.startswith(commit[:7]) for line in words for word in line.replace("g", " ").split())
