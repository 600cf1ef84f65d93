"""The conditions of an advisory, read from YAML values into judges.

A judge says whether its condition holds for what is known of a cluster: true, false, or can't tell (`None`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from clusterctl.llama.wire import PROTOCOL_BUILDS, RpcProtocol, builds_of_protocol

_PROTOCOL = re.compile(r"([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})")


@dataclass(frozen=True, slots=True)
class AdvisoryFacts:
    """What is known of a cluster. `None` means unknown, anywhere.

    `protocol` is what the workers answer; it bounds a build whose number is unknown. `settings` holds the
    settings of flags.yaml as text; one that is absent is not set.
    """

    build_number: int | None
    protocol: RpcProtocol | None
    uses_rpc: bool
    backends: tuple[str | None, ...]
    architecture: str | None
    settings: Mapping[str, str | None]


Judge: TypeAlias = Callable[[AdvisoryFacts], bool | None]
_TextJudge: TypeAlias = Callable[[str], bool]


def all_of(judged: Collection[bool | None]) -> bool | None:
    """Return false if one is, else unknown if one is, else true."""
    if False in judged:
        return False
    return None if None in judged else True


def _build(value: object) -> Judge:
    keys = _mapping(value, {"from", "to", "before", "in"}, "some of from, to, before and in")
    first = _number(keys.get("from", 1))
    last = min((_number(keys[key]) - (key == "before") for key in ("to", "before") if key in keys), default=None)
    listed = None if "in" not in keys else [_number(item) for item in _list(keys["in"])]

    def judge(facts: AdvisoryFacts) -> bool | None:
        lowest, highest = _possible_builds(facts)
        in_range = all_of([_at_least(first, lowest, highest), _at_most(last, lowest, highest)])
        return all_of([in_range, _is_one_of(listed, lowest, highest)])

    return judge


def _possible_builds(facts: AdvisoryFacts) -> tuple[int, int | None]:
    if facts.build_number is not None:
        return facts.build_number, facts.build_number
    return (0, None) if facts.protocol is None else builds_of_protocol(facts.protocol)


def _at_least(bound: int, lowest: int, highest: int | None) -> bool | None:
    if lowest >= bound:
        return True
    return False if highest is not None and highest < bound else None


def _at_most(bound: int | None, lowest: int, highest: int | None) -> bool | None:
    if bound is None:
        return True
    beyond = _at_least(bound + 1, lowest, highest)
    return None if beyond is None else not beyond


def _is_one_of(listed: Collection[int] | None, lowest: int, highest: int | None) -> bool | None:
    if listed is None:
        return True
    if not any(lowest <= number and (highest is None or number <= highest) for number in listed):
        return False
    return True if lowest == highest else None


def _protocol(value: object) -> Judge:
    before = _mapping(value, {"before"}, "`before`").get("before")
    numbers = _PROTOCOL.fullmatch(before) if isinstance(before, str) else None
    if not numbers:
        raise ValueError("must be {before: N.N.N}")
    bound = RpcProtocol(*(int(number) for number in numbers.groups()))

    def judge(facts: AdvisoryFacts) -> bool | None:
        if facts.protocol is not None:
            return facts.protocol < bound
        number = facts.build_number
        if number is None:
            return None
        if any(row.protocol >= bound and row.first <= number for row in PROTOCOL_BUILDS):
            return False
        return any(row.protocol < bound and number <= row.last for row in PROTOCOL_BUILDS) or None

    return judge


def _uses_rpc(value: object) -> Judge:
    wanted = _truth(value)
    return lambda facts: facts.uses_rpc is wanted


def _backend(value: object) -> Judge:
    wanted = _words(value)

    def judge(facts: AdvisoryFacts) -> bool | None:
        if any(backend in wanted for backend in facts.backends):
            return True
        return None if None in facts.backends else False

    return judge


def _backends_differ(value: object) -> Judge:
    wanted = _truth(value)

    def judge(facts: AdvisoryFacts) -> bool | None:
        known = {backend for backend in facts.backends if backend is not None}
        if len(known) < 2 and None in facts.backends:
            return None
        return (len(known) > 1) is wanted

    return judge


def _architecture(value: object) -> Judge:
    wanted = _words(value)
    return lambda facts: None if facts.architecture is None else facts.architecture in wanted


def _settings(value: object) -> Judge:
    if not isinstance(value, dict) or not value:
        raise ValueError("must name settings")
    judges = [_setting(str(name), condition) for name, condition in value.items()]
    return lambda facts: all_of([judge(facts) for judge in judges])


def _setting(name: str, condition: object) -> Judge:
    keys = {"in": condition} if isinstance(condition, list) else condition
    forms = "a list, {not_in: list}, {matches: regex} or {set: true|false}"
    ((key, value),) = _mapping(keys, {"in", "not_in", "matches", "set"}, forms, at_most=1).items()
    if key == "set":
        wanted = _truth(value)
        return lambda facts: (name in facts.settings) is wanted
    holds = _matcher(value) if key == "matches" else _membership(value, wanted=key == "in")

    def judge(facts: AdvisoryFacts) -> bool | None:
        given = facts.settings.get(name, "")
        return None if given is None else name in facts.settings and holds(given)

    return judge


def _membership(value: object, *, wanted: bool) -> _TextJudge:
    words = _words(value)
    return lambda given: (given in words) is wanted


def _matcher(value: object) -> _TextJudge:
    try:
        pattern = re.compile(str(value))
    except re.error as error:
        raise ValueError(f"must hold a regular expression ({error})") from error
    return lambda given: pattern.search(given) is not None


def _settings_differ(value: object) -> Judge:
    names = _words(value)
    if len(names) != 2:
        raise ValueError("must be two names")

    def judge(facts: AdvisoryFacts) -> bool | None:
        given = [facts.settings.get(name, "") for name in names]
        return None if None in given else given[0] != given[1]

    return judge


def _mapping(value: object, known: set[str], what: str, at_most: int = 4) -> dict[str, object]:
    if not isinstance(value, dict) or not 0 < len(value) <= at_most or not value.keys() <= known:
        raise ValueError(f"must be {what}")
    return value


def _list(value: object) -> list[object]:
    if not isinstance(value, list) or not value:
        raise ValueError("must be a list")
    return value


def _words(value: object) -> tuple[str, ...]:
    words = tuple(word for word in _list(value) if isinstance(word, str))
    if len(words) != len(_list(value)):
        raise ValueError("must be a list of words (quote on, off and numbers)")
    return words


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError("must hold build numbers")
    return value


def _truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


CONDITIONS: Mapping[str, Callable[[object], Judge]] = {
    "build": _build,
    "protocol": _protocol,
    "uses_rpc": _uses_rpc,
    "backend": _backend,
    "backends_differ": _backends_differ,
    "architecture": _architecture,
    "settings": _settings,
    "settings_differ": _settings_differ,
}
"""How to read each condition of `when`; a ValueError says what is wrong with its value."""
