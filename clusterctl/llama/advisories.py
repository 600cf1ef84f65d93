"""Builds and settings of llama.cpp that are known to fail: data in advisories.yaml, to which users may add.

What can't be judged, because a build or another fact is unknown, is reported as a note and never passed over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from clusterctl.data import Loader
from clusterctl.errors import ConfigError, Fault
from clusterctl.llama.advisory_conditions import CONDITIONS, AdvisoryFacts, Judge, all_of
from clusterctl.model import Problem, Severity

__all__ = ["Advisory", "AdvisoryFacts", "load_advisories", "match_advisories", "shipped_advisories"]

_TEXTS = ("code", "severity", "message", "hint", "source")


@dataclass(frozen=True, slots=True)
class Advisory:
    """A known fault: what happens, what to do, who reported it, and the conditions, by name, that must all hold.

    One that `is_certain` applies where it was found; of any other, too little is known to tell.
    """

    code: str
    severity: Severity
    message: str
    hint: str
    source: str
    conditions: Mapping[str, Judge]
    is_certain: bool = True

    def as_problem(self) -> Problem:
        """Return it as a problem, with its source in the hint."""
        return Problem(self.code, self.severity, self.message, f"{self.hint} ({self.source})")


def match_advisories(advisories: Iterable[Advisory], facts: AdvisoryFacts) -> tuple[Advisory, ...]:
    """Return the advisories that apply, and as notes those for which too little is known to tell."""
    judged = ((row, all_of([judge(facts) for judge in row.conditions.values()])) for row in advisories)
    return tuple(row if applies else _untold(row) for row, applies in judged if applies is not False)


@cache
def shipped_advisories() -> tuple[Advisory, ...]:
    """Return the advisories that come with clusterctl."""
    text = files("clusterctl.llama").joinpath("advisories.yaml").read_text("utf-8")
    return load_advisories(text, file="clusterctl/llama/advisories.yaml")


def load_advisories(text: str, *, file: str = "advisories.yaml") -> tuple[Advisory, ...]:
    """Read a YAML list of advisories.

    Raises:
        ConfigError: with every fault and its place in `file`.
    """
    root, rows = _parse(text, file)
    if root is None:
        return ()
    if not isinstance(root, yaml.SequenceNode):
        raise ConfigError([_fault(file, root, "", "must be a list of advisories")])
    places = [(node, row, f"[{index}]") for index, (node, row) in enumerate(zip(root.value, rows, strict=True))]
    if faults := [fault for node, row, path in places for fault in _faults(file, node, row, path)]:
        raise ConfigError(faults)
    return tuple(_advisory(row) for row in rows)


def _parse(text: str, file: str) -> tuple[yaml.Node | None, list[dict[str, Any]]]:
    """Return the root node, for places, and the values, yet unchecked."""
    try:
        loader = Loader(text)
        root = loader.get_single_node()
        return root, loader.construct_document(root) if root else []
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        message = getattr(error, "problem", None) or f"is no readable YAML ({type(error).__name__})"
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        raise ConfigError([Fault(file, line, column, "", message)]) from error


def _advisory(row: Mapping[str, Any]) -> Advisory:
    conditions = {name: CONDITIONS[name](value) for name, value in row["when"].items()}
    texts = {key: row[key] for key in _TEXTS if key != "severity"}
    return Advisory(severity=Severity(row["severity"]), conditions=conditions, **texts)


def _faults(file: str, node: yaml.Node, row: object, path: str) -> Iterator[Fault]:
    if not isinstance(row, dict):
        yield _fault(file, node, path, "must be a mapping")
        return
    places = _places(node)
    known = (*_TEXTS, "when")
    yield from _unknown_keys(file, places, row, known, path)
    for key in known:
        if key not in row:
            yield _fault(file, node, path, f"`{key}` is missing")
        elif key in _TEXTS and not (isinstance(row[key], str) and row[key].strip()):
            yield _fault(file, places.get(key, node), f"{path}.{key}", "must be a text")
    severities = [severity.value for severity in Severity]
    if isinstance(row.get("severity"), str) and row["severity"] not in severities:
        place = places.get("severity", node)
        yield _fault(file, place, f"{path}.severity", f"must be one of {', '.join(severities)}")
    if "when" in row:
        yield from _when_faults(file, places.get("when", node), row["when"], f"{path}.when")


def _when_faults(file: str, node: yaml.Node, when: object, path: str) -> Iterator[Fault]:
    if not isinstance(when, dict) or not when:
        yield _fault(file, node, path, f"must hold conditions: {', '.join(CONDITIONS)}")
        return
    places = _places(node)
    yield from _unknown_keys(file, places, when, tuple(CONDITIONS), path)
    for key in when.keys() & CONDITIONS.keys():
        try:
            CONDITIONS[key](when[key])
        except ValueError as error:
            yield _fault(file, places.get(key, node), f"{path}.{key}", str(error))


def _unknown_keys(
    file: str, places: Mapping[str, yaml.Node], row: Iterable[object], known: Sequence[str], path: str
) -> Iterator[Fault]:
    for key in row:
        if key not in known:
            yield _fault(file, places.get(str(key)), path, f"unknown key `{key}`; known: {', '.join(known)}")


def _places(node: yaml.Node) -> dict[str, yaml.Node]:
    """Return the value node of each key, by the key's text."""
    return {key.value: value for key, value in node.value if isinstance(key, yaml.ScalarNode)}


def _fault(file: str, node: yaml.Node | None, path: str, message: str) -> Fault:
    line, column = (node.start_mark.line + 1, node.start_mark.column + 1) if node else (1, 1)
    return Fault(file, line, column, path, message)


def _untold(advisory: Advisory) -> Advisory:
    message = f"can't tell whether this applies here: {advisory.message}"
    return replace(advisory, severity=Severity.NOTE, message=message, is_certain=False)
