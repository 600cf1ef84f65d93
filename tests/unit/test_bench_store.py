"""The file that keeps runs: what was written is read back, and nothing in it can do harm."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clusterctl.bench.store import append_run, demand_writable, parse_run, read_runs, runs_path
from clusterctl.errors import ClusterctlError
from clusterctl.measurements import Run
from tests.unit.bench_samples import run


def test_runs_are_kept_in_order(tmp_path: Path) -> None:
    path = tmp_path / "state" / "homelab.jsonl"
    runs = [run(name="a"), run(name="b", text="\u202eevil\n"), run(name=None)]
    for each in runs:
        append_run(path, each)
    assert list(read_runs(path)) == runs
    assert len(path.read_text().splitlines()) == 3


def test_a_cluster_without_runs_has_none(tmp_path: Path) -> None:
    assert read_runs(tmp_path / "none.jsonl") == ()


def test_half_a_line_of_a_crash_costs_no_other_run(tmp_path: Path) -> None:
    path = tmp_path / "homelab.jsonl"
    append_run(path, run(name="a"))
    with path.open("ab") as file:
        file.write(b'{"at": "2026')
    append_run(path, run(name="b"))
    assert [kept.name for kept in read_runs(path)] == ["a", "b"]


@pytest.mark.parametrize("line", [b"", b"[]", b"{}", b"\xff\xfe", b'{"at": 3}', b"null", b"[" * 5000])
def test_a_line_that_is_no_run_is_left_out(line: bytes) -> None:
    assert parse_run(line) is None


@given(line=st.binary(max_size=60))
def test_no_line_crashes_the_reader(line: bytes) -> None:
    assert parse_run(line) is None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text())
def test_any_text_of_a_node_survives(tmp_path: Path, text: str) -> None:
    path = tmp_path / "any.jsonl"
    path.unlink(missing_ok=True)
    kept: Run = run(text=text, build=text)
    append_run(path, kept)
    assert read_runs(path) == (kept,)


def test_the_file_follows_xdg_but_not_a_relative_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ops")
    at_home = Path("/home/ops/.local/state/clusterctl/bench/c.jsonl")
    assert runs_path("c", {"XDG_STATE_HOME": "/state"}) == Path("/state/clusterctl/bench/c.jsonl")
    assert runs_path("c", {"XDG_STATE_HOME": "state"}) == at_home
    assert runs_path("c", {}) == at_home


def test_a_place_that_cannot_be_written_is_told_before_anything_is_measured(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ClusterctlError, match="can't be kept in"):
        demand_writable(tmp_path / "file" / "homelab.jsonl")
