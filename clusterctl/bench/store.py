"""The file that keeps every run of a cluster on this machine, one JSON document a line."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from io import FileIO
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from clusterctl.errors import ClusterctlError
from clusterctl.measurements import Run

_RUN = TypeAdapter(Run)


def runs_path(cluster: str, environment: Mapping[str, str]) -> Path:
    """`${XDG_STATE_HOME:-~/.local/state}/clusterctl/bench/CLUSTER.jsonl`; a relative XDG path does not count."""
    state = Path(environment.get("XDG_STATE_HOME", ""))
    base = state if state.is_absolute() else Path.home() / ".local" / "state"
    return base / "clusterctl" / "bench" / f"{cluster}.jsonl"


def append_run(path: Path, run: Run) -> None:
    """Add a run to the end of the file; one write, so that two runs at a time can't mix.

    Raises:
        ClusterctlError: if the file can't be written.
    """
    line = json.dumps(asdict(run)).encode() + b"\n"
    with _writing(path) as file:
        # Whatever a crash left half-written stays a line of its own.
        file.write(line if _ends_with_a_line(path) else b"\n" + line)


def demand_writable(path: Path) -> None:
    """Return if runs can be kept in the file, which is made if need be.

    Raises:
        ClusterctlError: if not.
    """
    with _writing(path):
        return


def read_runs(path: Path) -> tuple[Run, ...]:
    """Return the runs that are kept, oldest first; a line that is damaged or unknown is left out.

    Raises:
        ClusterctlError: if the file can't be read.
    """
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise ClusterctlError(f"{path} can't be read: {error.strerror}", hint="look at its rights") from error
    return tuple(run for line in lines if (run := parse_run(line)))


def parse_run(line: bytes) -> Run | None:
    """Read one line of the file; `None` if it is no run."""
    try:
        return _RUN.validate_json(line)
    except ValidationError:
        return None


@contextmanager
def _writing(path: Path) -> Iterator[FileIO]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileIO(path, "ab") as file:
            yield file
    except OSError as error:
        raise ClusterctlError(
            f"runs can't be kept in {path}: {error.strerror}",
            hint="make the directory writable, or set XDG_STATE_HOME to another",
        ) from error


def _ends_with_a_line(path: Path) -> bool:
    with path.open("rb") as file:
        if file.seek(0, os.SEEK_END) == 0:
            return True
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"
