"""Whether two programs are the same build of llama.cpp. What is not known never counts as the same."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from clusterctl.llama.build import known_commit, known_number
from clusterctl.model import Build


class Sameness(StrEnum):
    """The verdict on two builds; only `MATCH` may pass a check."""

    MATCH = "match"
    MISMATCH = "mismatch"
    SAME_TAG_OTHER_SOURCE = "same-tag-other-source"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A verdict and the one sentence that says why."""

    verdict: Sameness
    reason: str


def compare_builds(left: Build | None, right: Build | None) -> Comparison:
    """Compare by commit where both have one, else by number; a version alone can only prove a difference.

    Commits decide even against the numbers, since a clone with little history counts fewer commits.
    """
    if left is None or right is None:
        return Comparison(Sameness.UNKNOWN, "a program does not tell its build")
    if known_commit(left) and known_commit(right):
        return _compare_commits(left, right)
    if known_number(left) and known_number(right):
        return _compare_numbers(left, right)
    if versions_differ(left, right):
        return Comparison(Sameness.MISMATCH, f"versions {left.version} and {right.version} differ")
    return Comparison(Sameness.UNKNOWN, f"{_names(left, right)} share neither a commit nor a number to compare")


def commits_agree(left: str, right: str) -> bool:
    """Whether one commit is the other, or its abbreviation; both are known commits of at least 7 digits."""
    return left.startswith(right) or right.startswith(left)


def versions_differ(left: Build, right: Build) -> bool:
    """Whether two known versions are surely of different sources.

    `-dev` does not count: a release built without its git tag says `0.4.0-dev` (cmake/build-info.cmake).
    """
    if left.version is None or right.version is None:
        return False
    return left.version.partition("-")[0] != right.version.partition("-")[0]


def build_name(build: Build) -> str:
    """A build in words for a sentence, `b8763 (ff5ef8278)` or `commit 7e4c0a9`."""
    if build.commit and build.tag is None and build.version is None:
        return f"commit {build.commit}"
    return str(build)


def _names(left: Build, right: Build) -> str:
    return f"{build_name(left)} and {build_name(right)}"


def _compare_commits(left: Build, right: Build) -> Comparison:
    if commits_agree(known_commit(left) or "", known_commit(right) or ""):
        return Comparison(Sameness.MATCH, f"{_names(left, right)} are the same commit")
    if known_number(left) and known_number(left) == known_number(right):
        return Comparison(
            Sameness.SAME_TAG_OTHER_SOURCE, f"{_names(left, right)} share a number but are different commits"
        )
    return Comparison(Sameness.MISMATCH, f"{_names(left, right)} are different commits")


def _compare_numbers(left: Build, right: Build) -> Comparison:
    if known_number(left) != known_number(right):
        return Comparison(Sameness.MISMATCH, f"{_names(left, right)} are different builds")
    if versions_differ(left, right):
        return Comparison(
            Sameness.SAME_TAG_OTHER_SOURCE,
            f"both say {left.tag}, but their versions {left.version} and {right.version} differ",
        )
    if left.packager and right.packager and left.packager != right.packager:
        reason = f"both say {left.tag}, but one is from {left.packager} and the other from {right.packager}"
        return Comparison(Sameness.SAME_TAG_OTHER_SOURCE, reason)
    if known_commit(left) or known_commit(right):
        return Comparison(Sameness.UNKNOWN, f"both say {left.tag}, but only one names its commit")
    return Comparison(Sameness.MATCH, f"both say {left.tag}, and neither names a commit to compare")
