"""The build that an inventory pins, and whether a program is it."""

from __future__ import annotations

import re

from clusterctl.llama.build import known_commit, known_number
from clusterctl.llama.sameness import Comparison, Sameness, build_name, commits_agree, versions_differ
from clusterctl.model import Build

_FORMS = (
    re.compile(r"b?(?P<number>[0-9]{1,6})(?:-(?P<commit>[0-9a-f]{7,40}))?"),
    re.compile(r"(?P<commit>[0-9a-f]{7,40})"),
    re.compile(r"v?(?P<version>[0-9]+\.[0-9]+\.[0-9]+(?:-[0-9a-z.]+)?)"),
)
_WORDS = {Sameness.MISMATCH: "has another", Sameness.UNKNOWN: "does not tell for sure its"}


def parse_pin(pin: str) -> Build | None:
    """Return the build that a pin asks for, or `None` if it is no tag, commit or version of llama.cpp.

    Forms: `b11434`, `11434`, `7e4c0a9`, `b10217-ddd4ec142`, `0.4.0`, `v0.4.0`. `b1` pins nothing: every clone
    without history says so.
    """
    matches = (form.fullmatch(pin.strip().lower()) for form in _FORMS)
    parts = next((match.groupdict() for match in matches if match), None)
    if parts is None:
        return None
    number = int(parts["number"]) if "number" in parts else None
    wanted = Build(number, parts.get("commit"), parts.get("version"))
    return wanted if number == known_number(wanted) else None


def satisfies_pin(build: Build | None, pin: str) -> Comparison:
    """Compare a build with an inventory's pin, by every part that the pin names.

    A pinned number can't tell a fork that counts for itself; pin the commit for that.
    """
    wanted = parse_pin(pin)
    if wanted is None:
        return Comparison(Sameness.UNKNOWN, f"{pin!r} is not a tag, a commit or a version of llama.cpp")
    if build is None:
        return Comparison(Sameness.UNKNOWN, f"a program does not tell its build, and {pin} is pinned")
    verdicts = _pinned_parts(build, wanted)
    for verdict, words in _WORDS.items():
        for part, part_verdict in verdicts.items():
            if part_verdict is verdict:
                return Comparison(verdict, f"{build_name(build)} {words} {part}, and {pin} is pinned")
    return Comparison(Sameness.MATCH, f"{build_name(build)} is what {pin} pins")


def _pinned_parts(build: Build, wanted: Build) -> dict[str, Sameness]:
    verdicts = {}
    number, commit = known_number(build), known_commit(build)
    if wanted.number is not None:
        verdicts["number"] = _judge(number is not None, number == wanted.number)
    if wanted.commit is not None:
        verdicts["commit"] = _judge(commit is not None, commits_agree(commit or "", wanted.commit))
    if wanted.version is not None:
        same = build.version == wanted.version
        verdicts["version"] = _judge(same or versions_differ(build, wanted), same)
    return verdicts


def _judge(known: bool, same: bool) -> Sameness:
    if not known:
        return Sameness.UNKNOWN
    return Sameness.MATCH if same else Sameness.MISMATCH
