"""Why a llama.cpp program failed, told from its log and exit status.

The last line of a log is rarely the reason: a head that dies with "Remote RPC server crashed" only says that
a worker went first (llama.cpp issue 22643). So every known line has a rank, and the first line of the best
rank is the diagnosis. What lines mean is data, in diagnosis.yaml.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from functools import cache
from typing import Any

from clusterctl.data import read_data

_LONGEST_LINE = 1000
"""Characters of a line that are looked at: known texts stand at the beginning, and time stays bounded."""


class Source(StrEnum):
    """Where lines come from: a program, by its `Role`, or a command that clusterctl ran on a node."""

    HEAD = "head"
    WORKER = "worker"
    START = "start"
    PROBE = "probe"


class Rank(IntEnum):
    """How much a line explains; the lowest wins."""

    CAUSE = 0
    SYMPTOM = 1
    CONSEQUENCE = 2


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A stable code, the cause and the next step in words, and the line that told (empty: the exit status).

    `blames_worker` holds where a head speaks of a worker: the reason is then in that worker's log.
    """

    code: str
    cause: str
    next_step: str
    line: str
    rank: Rank = Rank.CAUSE
    blames_worker: bool = False


@dataclass(frozen=True, slots=True)
class NodeLog:
    """What one node's program left behind; `exit_status` is `None` while it runs, or if unknown."""

    source: Source
    lines: tuple[str, ...]
    exit_status: int | None = None


@dataclass(frozen=True, slots=True)
class _Entry:
    code: str
    patterns: tuple[re.Pattern[str], ...]
    sources: frozenset[Source]
    rank: Rank
    blames_worker: bool
    cause: str
    next_step: str

    def read(self, line: str) -> Diagnosis | None:
        match = next((found for pattern in self.patterns if (found := pattern.search(line))), None)
        if match is None:
            return None
        groups = {name: value or "" for name, value in match.groupdict().items()}
        cause, next_step = self.cause.format(**groups), self.next_step.format(**groups)
        return Diagnosis(self.code, cause, next_step, line, self.rank, self.blames_worker)


def diagnose(lines: Iterable[str], *, source: Source, exit_status: int | None = None) -> Diagnosis | None:
    """Return the first cause that the lines or the exit status tell; `None` if they tell nothing known.

    `exit_status` is as a shell gives it, 128 + n for signal n; -n is taken to mean the same.
    """
    found = [*_read_lines(lines, source), *_read_exit_status(exit_status)]
    return min(found, key=lambda diagnosis: diagnosis.rank, default=None)


def diagnose_cluster(logs: Mapping[str, NodeLog]) -> tuple[str, Diagnosis] | None:
    """Return the node where the first cause is, and the cause; `None` if no log tells anything known.

    What a worker says goes before what the head says about workers.
    """
    found = [
        (node, log.source is Source.HEAD, diagnosis)
        for node, log in logs.items()
        if (diagnosis := diagnose(log.lines, source=log.source, exit_status=log.exit_status))
    ]
    if not found:
        return None
    node, _, diagnosis = min(found, key=lambda item: (item[1] and item[2].blames_worker, item[2].rank, item[1]))
    return node, diagnosis


def _read_lines(lines: Iterable[str], source: Source) -> Iterator[Diagnosis]:
    entries = [entry for entry in _entries() if source in entry.sources]
    for line in lines:
        shown = line[:_LONGEST_LINE].strip()
        if diagnosis := next((known for entry in entries if (known := entry.read(shown))), None):
            yield diagnosis


def _read_exit_status(exit_status: int | None) -> Iterator[Diagnosis]:
    if exit_status is None:
        return
    known = _data()["exit_statuses"].get(exit_status if exit_status >= 0 else 128 - exit_status)
    if known:
        yield Diagnosis(
            known["code"], known["cause"], known["next"], "", _rank(known, "symptom"), "blames" in known
        )


@cache
def _entries() -> tuple[_Entry, ...]:
    return tuple(
        _Entry(
            code=row["code"],
            patterns=tuple(re.compile(pattern) for pattern in row["match"]),
            sources=frozenset(Source(name) for name in row.get("source", Source)),
            rank=_rank(row, "cause"),
            blames_worker="blames" in row,
            cause=row["cause"],
            next_step=row["next"],
        )
        for row in _data()["lines"]
    )


def _rank(row: Mapping[str, str], default: str) -> Rank:
    return Rank[row.get("rank", default).upper()]


@cache
def _data() -> dict[str, Any]:
    return read_data("clusterctl.llama", "diagnosis.yaml")
