"""The documents of `logs`, `unlock`, `version` and of every command that fails, under the rules of reports.py."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LineReport:
    """One line of a log, and the node that wrote it."""

    node: str
    text: str


@dataclass(frozen=True, slots=True)
class CauseReport:
    """The likely cause of a failure, the next step, and the line that told (empty: the exit status).

    The lower the `rank`, the more the line explains. `blames_worker`: the reason is in that worker's log.
    """

    node: str
    code: str
    cause: str
    next_step: str
    line: str
    rank: int
    blames_worker: bool


@dataclass(frozen=True, slots=True)
class LogsReport:
    """The answer of `logs`; `unreachable` says why, by node."""

    lines: tuple[LineReport, ...]
    cause: CauseReport | None
    unreachable: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class BundleReport:
    """The answer of `logs --bundle`: the file that was written, and what is in it."""

    ok: bool
    file: str
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UnlockReport:
    """The answer of `unlock`: who held the lock, null if nobody did."""

    ok: bool
    changed: bool
    holder: str | None


@dataclass(frozen=True, slots=True)
class VersionReport:
    """The answer of `version`."""

    version: str


@dataclass(frozen=True, slots=True)
class CauseOfError:
    """One error; `hint` is the next step."""

    exit_code: int
    node: str | None
    message: str
    hint: str | None
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ErrorDetail(CauseOfError):
    """The error that ended a command; `causes` are those of its nodes, if more than one failed."""

    causes: tuple[CauseOfError, ...]


@dataclass(frozen=True, slots=True)
class ErrorReport:
    """The answer of any command that fails."""

    ok: bool
    error: ErrorDetail
