"""Running the `clusterctl` program with an environment of its own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from clusterctl.cli.main import run

MAIN = ("-c", "from clusterctl.cli.main import main; main()")

# What would reach into the tests from the outside.
FOREIGN_VARIABLES = {
    "CLUSTERCTL_INVENTORY",
    "CLUSTERCTL_RECIPE",
    "NO_COLOR",
    "FORCE_COLOR",
    "COLUMNS",
    "SSH_AUTH_SOCK",
}


def environment(home: Path, **variables: str) -> dict[str, str]:
    """A plain environment with a home directory of its own."""
    plain = {name: value for name, value in os.environ.items() if name not in FOREIGN_VARIABLES}
    return {**plain, "HOME": str(home), "TERM": "xterm-256color", "LANG": "C.UTF-8", **variables}


@dataclass(frozen=True, slots=True)
class Done:
    """What a run of the program left."""

    exit_code: int
    stdout: str
    stderr: str


@dataclass(frozen=True, slots=True)
class Cli:
    """Runs the program inside this process."""

    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]

    def __call__(self, *arguments: str, env: Mapping[str, str] | None = None) -> Done:
        """Run the program with these arguments, and with these variables besides the plain ones."""
        with self.monkeypatch.context() as patch:
            for name, value in (env or {}).items():
                patch.setenv(name, value)
            exit_code = run(list(arguments))
        return Done(exit_code, *self.capsys.readouterr())
