"""Which build of llama.cpp a program is, read from whatever it prints of itself."""

from __future__ import annotations

import re

from clusterctl.llama.text import plain_lines
from clusterctl.model import Build

_NUMBER = r"(?P<number>[0-9]{1,9})"
_WORD = r'(?P<commit>[^\s(),"]+)'
_HASH = r"(?P<commit>[0-9a-fA-F]{7,40})"
_VERSION = r"(?P<version>[0-9]+\.[0-9]+\.[0-9]+[^\s(]*)"
# "driver version: 580" is not ours: only log marks, or a label ending in one of :|>], may stand before.
_START = r"^(?:.*[:|>\]]|[0-9.]+ [A-Z])?\s*"

# Each form with the program that prints it. They are searched in all lines, because CUDA, HIP and Vulkan
# builds print their devices before the version (llama.cpp issue 21801).
_FORMS = tuple(
    re.compile(form)
    for form in (
        # common/build-info.cpp since semantic versions (2026-08), then before
        rf"{_START}version: {_VERSION} \(build {_NUMBER}(?:, commit {_WORD})?\)",
        rf"{_START}version: {_NUMBER} \({_WORD}\)",
        # logs of llama-server: "build: 6989 (eeee367de) with …", "print_info: build 10587 (3f545becc) …"
        rf"{_START}build:? (?P<number>[0-9]{{1,6}}) \({_WORD}\)",
        # llama-bench, the other way round
        rf"{_START}build: {_HASH} \({_NUMBER}\)",
        # the unified `llama` binary, /props of llama-server, bundles made by Unsloth
        rf"^\s*b{_NUMBER}-{_HASH}\s*$",
        rf'\bbuild_info"?\s*[:=]\s*"?b{_NUMBER}-{_WORD}',
        rf"^llama\.cpp version: b{_NUMBER}-(?:[a-z]+-)?{_HASH}\s*$",
        # llama-box and ik_llama.cpp
        rf"{_START}vendor\s*: llama\.cpp {_WORD} \({_NUMBER}\)",
        rf'^INFO \[[^\]]*\] build info \|.*\bbuild={_NUMBER} commit="{_WORD}"',
    )
)
_COMMIT = re.compile(r"[0-9a-f]{7,40}")
# "unknown" and "b11434" are what builds from source archives say.
_PACKAGER = re.compile(r"(?!unknown$|none$|b?[0-9]+$)[a-z].*")
_SPOILT_COMMIT = re.compile(r"[0-9a-f]+(?:[-+].*)?")


def parse_build(text: str) -> Build | None:
    """Return the build that `text` names, or `None` if it names none, or two that differ.

    Two different version lines can't be one program's, and choosing would be a guess. Numbers 0 and 1 are
    unknown: they come from `git rev-list --count` without history or in a clone of depth 1. A tag in the
    commit's place (`commit b11434`, builds from source archives) is not a commit.
    """
    found = {build for line in plain_lines(text) if (build := _parse_line(line))}
    return found.pop() if len(found) == 1 else None


def known_number(build: Build) -> int | None:
    """Return the build number if it says anything: 0 and 1 come from clones without history."""
    return build.number if build.number is not None and build.number > 1 else None


def known_commit(build: Build) -> str | None:
    """Return the commit in lower case if it is one: 7 to 40 hexadecimal digits."""
    commit = (build.commit or "").lower()
    return commit if _COMMIT.fullmatch(commit) and commit != build.tag else None


def _parse_line(line: str) -> Build | None:
    matches = (form.search(line) for form in _FORMS)
    parts = next((match.groupdict() for match in matches if match), None)
    if parts is None:
        return None
    printed = Build(int(parts["number"]), (parts["commit"] or "").lower(), parts.get("version"))
    commit, number = known_commit(printed), known_number(printed)
    if commit is None and _is_spoilt(printed):
        number = None
    packager = printed.commit if commit is None and number and _PACKAGER.fullmatch(printed.commit or "") else None
    build = Build(number, commit, printed.version, packager)
    return build if build != Build() else None


def _is_spoilt(printed: Build) -> bool:
    """Whether the commit is cut short or changed (`abc1234-dirty`): then the number tells nothing either."""
    commit = printed.commit or ""
    return commit not in (printed.tag, str(printed.number)) and _SPOILT_COMMIT.fullmatch(commit) is not None
