"""Everything that can go wrong on purpose, with the exit code that scripts rely on.

ClusterctlError              1  something unexpected
├── UsageError               2  wrong option, missing file
│   ├── ConfigError          2  faults in an inventory or recipe, all at once
│   └── ModelFileError       2  a model file that is damaged, incomplete or unknown
├── NodeUnreachable          3  no SSH connection, or it broke
│   └── CommandTimeout       3  the node did not answer in time
├── BuildSkew                4  builds differ, or can't be verified
├── PlanDoesNotFit           5  the model does not fit the devices
├── StartFailed              6  a process or a check failed while bringing up
│   └── ComputesNonsense     6  the cluster answers, but what it computes is wrong
├── InstallFailed            6  a node could not get its build; no node was switched to it
├── NotReady                 7  alive, but not serving in time
├── LockHeld                 8  another operator works on this cluster
├── Degraded                 9  partly up, or partly down
├── Interrupted            130  Ctrl-C or SIGTERM
└── NodesFailed              *  several nodes failed; the gravest code of its causes
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar


class ClusterctlError(Exception):
    """Says what went wrong, on which node, why, and what to do next.

    `fields` stand in its JSON document beside the error itself.
    """

    exit_code = 1
    fields: ClassVar[Mapping[str, object]] = {}

    def __init__(
        self, message: str, *, node: str | None = None, hint: str | None = None, log: Sequence[str] = ()
    ) -> None:
        super().__init__(message)
        self.message = message
        self.node = node
        self.hint = hint
        self.log = tuple(log)

    def __str__(self) -> str:
        return f"{self.node}: {self.message}" if self.node else self.message


class UsageError(ClusterctlError):
    """An option, an argument or a file that can't be used."""

    exit_code = 2


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """One fault of a YAML file; line and column count from 1."""

    file: str
    line: int
    column: int
    path: str
    message: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}:{self.column}"
        return f"{where}: {self.path}: {self.message}" if self.path else f"{where}: {self.message}"


class ConfigError(UsageError):
    """All faults of an inventory or a recipe, in the order of the file."""

    def __init__(self, faults: Sequence[Fault], *, hint: str | None = None) -> None:
        self.faults = tuple(sorted(faults))
        super().__init__("\n".join(str(fault) for fault in self.faults), hint=hint)


class ModelFileError(UsageError):
    """A model file that is damaged, incomplete, or of a kind that can't be read."""


class NodeUnreachable(ClusterctlError):
    """No connection to a node, or it broke off; what ran there is unknown."""

    exit_code = 3


class CommandTimeout(NodeUnreachable):
    """A node did not finish a command in time; whether it still runs is unknown."""


class BuildSkew(ClusterctlError):
    """Builds of llama.cpp differ between nodes, or can't be told."""

    exit_code = 4


class PlanDoesNotFit(ClusterctlError):
    """The model needs more memory than the devices have."""

    exit_code = 5
    fields: ClassVar[Mapping[str, object]] = {"fits": False}


class StartFailed(ClusterctlError):
    """A process did not start, or is not what was planned."""

    exit_code = 6


class InstallFailed(ClusterctlError):
    """A node could not get a build of llama.cpp, or the build does not work there."""

    exit_code = 6


class ComputesNonsense(StartFailed):
    """The cluster answers, but what it computes is wrong."""


class NotReady(ClusterctlError):
    """All processes live, but the head does not serve within the deadline."""

    exit_code = 7


class LockHeld(ClusterctlError):
    """Another operator holds the cluster's lock."""

    exit_code = 8


class Degraded(ClusterctlError):
    """The cluster is neither whole nor gone."""

    exit_code = 9


class Interrupted(ClusterctlError):
    """The user ended the command."""

    exit_code = 130


class NodesFailed(ClusterctlError):
    """Several nodes failed in one step; every node's own error is kept."""

    def __init__(self, errors: Sequence[ClusterctlError]) -> None:
        self.errors = tuple(errors)
        super().__init__("\n".join(str(error) for error in self.errors))
        self.exit_code = max(error.exit_code for error in self.errors)


def raise_all(errors: Sequence[ClusterctlError]) -> None:
    """Raise nothing for no error, the error itself for one, `NodesFailed` for more."""
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise NodesFailed(errors)
