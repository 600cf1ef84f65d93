"""What clusterctl writes down on a node about a program it started, and what became of that program."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any

from clusterctl.model import Role
from clusterctl.remote.answer import whole_number


class ProcessState(StrEnum):
    """`prelude.sh` decides it on the node, from boot, start time and arguments.

    UNSURE: the process of the record lives, but has other arguments than it was given; or it has ended, and what
    it had started has not.
    """

    ABSENT = "absent"
    STARTING = "starting"
    RUNNING = "running"
    UNSURE = "unsure"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Record:
    """Why a program runs.

    `inputs` is a digest of all that decided its plan, to tell an unchanged cluster. `free_before_mib` is what each
    of the node's cards had free before the program started, and `held_before_mib` what other programs held of
    NVIDIA cards then, by process number; `None` if that was not asked.
    """

    cluster: str
    node: str
    role: Role
    argv: tuple[str, ...]
    address: str
    port: int
    build: str
    owner: str
    started_at: str
    inputs: str
    env: dict[str, str] = field(default_factory=dict)
    free_before_mib: dict[str, int] = field(default_factory=dict)
    held_before_mib: dict[str, int] | None = None

    def to_json(self) -> str:
        """The record as the text kept on the node."""
        return json.dumps(asdict(self))


@dataclass(frozen=True, slots=True)
class Process:
    """A record together with what the node says of its process now.

    `program_changed`: the program's files on disk are no longer those it was started from.
    """

    record: Record
    state: ProcessState
    pid: int | None
    exit_status: int | None
    program_changed: bool = False

    @property
    def runs(self) -> bool:
        """Whether the very process of the record is alive."""
        return self.state is ProcessState.RUNNING


def parse_process(text: str) -> Process | None:
    """Read a record section: four lines of the node's own, then the record's JSON; `None` if it is damaged."""
    try:
        state, pid, exit_status, changed, document = text.split("\n", 4)
        raw = json.loads(document)
        raw["role"], raw["argv"] = Role(raw["role"]), tuple(raw["argv"])
        number, status = whole_number(pid), whole_number(exit_status)
        return Process(Record(**known_fields(Record, raw)), ProcessState(state), number, status, changed != "same")
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def known_fields(kind: type[Any], raw: Mapping[str, Any]) -> dict[str, Any]:
    """What of a JSON object is a field of a dataclass.

    A later version may have written down more; what it started can be ended all the same.
    """
    return {field.name: raw[field.name] for field in fields(kind) if field.name in raw}
