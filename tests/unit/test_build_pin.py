"""A pin in the inventory is met only by a program that says so."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.llama.build_pin import parse_pin, satisfies_pin
from clusterctl.llama.sameness import Sameness
from clusterctl.model import Build

RELEASE = Build(10991, "930e2fa59", "0.4.1-dev")
SHALLOW = Build(None, "7e4c0a9", "0.1.0-dev")


@pytest.mark.parametrize(
    ("build", "pin", "expected"),
    [
        (RELEASE, "b10991", Sameness.MATCH),
        (RELEASE, "10991", Sameness.MATCH),
        (RELEASE, "B10991 ", Sameness.MATCH),
        (RELEASE, "930e2fa", Sameness.MATCH),
        (RELEASE, "930E2FA591234567890123456789012345678901", Sameness.MATCH),
        (RELEASE, "b10991-930e2fa59", Sameness.MATCH),
        (RELEASE, "0.4.1-dev", Sameness.MATCH),
        (Build(10809, "5266f24da", "0.4.0"), "v0.4.0", Sameness.MATCH),
        (Build(11434), "b11434", Sameness.MATCH),
        (RELEASE, "b10992", Sameness.MISMATCH),
        (RELEASE, "931e2fa", Sameness.MISMATCH),
        (RELEASE, "b10991-931e2fa59", Sameness.MISMATCH),
        (RELEASE, "0.4.0", Sameness.MISMATCH),
        (SHALLOW, "b10434-7e4c0a8", Sameness.MISMATCH),
        (RELEASE, "0.4.1", Sameness.UNKNOWN),
        (SHALLOW, "b10434", Sameness.UNKNOWN),
        (SHALLOW, "b10434-7e4c0a9", Sameness.UNKNOWN),
        (Build(1), "b1", Sameness.UNKNOWN),
        (Build(8763, "ff5ef8278"), "0.4.0", Sameness.UNKNOWN),
        (Build(11434), "7e4c0a9", Sameness.UNKNOWN),
        (None, "b11434", Sameness.UNKNOWN),
        (RELEASE, "latest", Sameness.UNKNOWN),
        (RELEASE, "", Sameness.UNKNOWN),
    ],
)
def test_a_pin_is_met_by_number_commit_or_version(build: Build | None, pin: str, expected: Sameness) -> None:
    assert satisfies_pin(build, pin).verdict is expected


def test_the_reason_says_what_a_shallow_clone_does_not_tell() -> None:
    reason = satisfies_pin(SHALLOW, "b10434").reason
    assert reason == "0.1.0-dev (7e4c0a9) does not tell for sure its number, and b10434 is pinned"


@pytest.mark.parametrize(
    ("pin", "wanted"),
    [
        ("b123456", Build(123456)),
        ("b113b73", Build(None, "b113b73")),
        ("1234567", Build(None, "1234567")),
        ("b1", None),
        ("0", None),
        ("ff5ef", None),
        ("b11434; rm -rf /", None),
    ],
)
def test_tags_commits_and_versions_are_told_apart(pin: str, wanted: Build | None) -> None:
    assert parse_pin(pin) == wanted


@given(st.text())
def test_any_pin_gets_a_verdict_and_no_build_never_meets_it(pin: str) -> None:
    assert satisfies_pin(Build(), pin).verdict is Sameness.UNKNOWN
    assert satisfies_pin(None, pin).verdict is Sameness.UNKNOWN
