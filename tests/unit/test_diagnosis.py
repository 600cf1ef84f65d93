"""Recorded logs and what they must be diagnosed as."""

from __future__ import annotations

import re
import string
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterctl.llama.diagnosis import NodeLog, Rank, Source, diagnose, diagnose_cluster

TESTS = Path(__file__).parents[1]
EXPECTED: dict[str, Any] = yaml.safe_load((TESTS / "samples" / "diagnosis.yaml").read_text("utf-8"))
TABLE: dict[str, Any] = yaml.safe_load(
    (TESTS.parent / "clusterctl" / "llama" / "diagnosis.yaml").read_text("utf-8")
)
FOLDERS = {"samples": TESTS / "samples", "logs": TESTS / "data" / "logs"}


def lines_of(folder: str, name: str) -> list[str]:
    lines = (FOLDERS[folder] / name).read_text("utf-8").splitlines()
    return [line for line in lines if not line.startswith("# source")]


def log(source: Source, folder: str, name: str, exit_status: int | None = None) -> NodeLog:
    return NodeLog(source, tuple(lines_of(folder, name)), exit_status)


@pytest.mark.parametrize(("folder", "name"), [(folder, name) for folder in FOLDERS for name in EXPECTED[folder]])
def test_a_recorded_log_is_diagnosed_as_expected(folder: str, name: str) -> None:
    expected = EXPECTED[folder][name]
    diagnosis = diagnose(lines_of(folder, name), source=Source(str(expected["source"])))
    assert (diagnosis and diagnosis.code) == expected["code"]
    if diagnosis:
        assert diagnosis.line in {line.strip() for line in lines_of(folder, name)}
        assert diagnosis.cause
        assert diagnosis.next_step


def test_no_recorded_log_is_forgotten() -> None:
    kinds = re.compile(r"(error|worker|banner)_")
    assert set(EXPECTED["samples"]) == {p.name for p in FOLDERS["samples"].iterdir() if kinds.match(p.name)}
    assert set(EXPECTED["logs"]) == {path.name for path in FOLDERS["logs"].iterdir()}


@pytest.mark.parametrize("row", EXPECTED["lines"], ids=lambda row: str(row["line"])[:40])
def test_a_known_line_is_understood(row: dict[str, str]) -> None:
    diagnosis = diagnose([row["line"]], source=Source(row["source"]))
    assert diagnosis is not None
    assert diagnosis.code == row["code"]


@pytest.mark.parametrize(
    "line",
    [
        "WARNING: Host ('10.0.0.2') is != '127.0.0.1'",
        "         Never expose the RPC server to an open network!",
        "57\t./nptl/futex-internal.c: No such file or directory.",
        "ggml_vulkan: No devices found.",
        "Accepted client connection",
        "0.00.023.788 W srv  llama_server: CORS is set to allow all origins ('*') and no API key is set",
        "srv  log_server_r: done request: POST /v1/chat/completions 127.0.0.1 200",
    ],
)
def test_an_ordinary_line_is_no_error(line: str) -> None:
    assert all(diagnose([line], source=source) is None for source in Source)


def test_the_first_cause_wins_over_all_that_follows() -> None:
    lines = ["alloc_tensor_range: failed to allocate CPU buffer of size 9", "exiting due to model loading error"]
    diagnosis = diagnose(
        [*lines, "ggml_aligned_malloc: insufficient memory", "std::bad_alloc"], source=Source.HEAD
    )
    assert diagnosis is not None
    assert diagnosis.line == "ggml_aligned_malloc: insufficient memory"


def test_the_cause_names_what_the_line_names() -> None:
    diagnosis = diagnose(["RPC server version mismatch: 4.0.1"], source=Source.HEAD)
    assert diagnosis is not None
    assert "4.0.1" in diagnosis.cause


def test_braces_in_a_log_are_only_text() -> None:
    diagnosis = diagnose(["unknown model architecture: '{0.__class__}{'"], source=Source.HEAD)
    assert diagnosis is not None
    assert "{0.__class__}{" in diagnosis.cause


@pytest.mark.parametrize(
    ("exit_status", "code"),
    [(137, "killed"), (-9, "killed"), (139, "segmentation_fault"), (134, "aborted"), (141, "broken_pipe"),
     (127, "command_not_found"), (126, "not_executable"), (132, "illegal_instruction"), (143, "terminated")],
)  # fmt: skip
def test_an_exit_status_speaks_where_the_log_is_silent(exit_status: int, code: str) -> None:
    diagnosis = diagnose(["Accepted client connection"], source=Source.WORKER, exit_status=exit_status)
    assert diagnosis is not None
    assert (diagnosis.code, diagnosis.line) == (code, "")


@pytest.mark.parametrize("exit_status", [None, 0, 1, 99])
def test_an_exit_status_without_a_meaning_tells_nothing(exit_status: int | None) -> None:
    assert diagnose([], source=Source.WORKER, exit_status=exit_status) is None


def test_a_cause_in_the_log_goes_before_the_exit_status() -> None:
    lines = ["Invalid host address: localhost"]
    diagnosis = diagnose(lines, source=Source.WORKER, exit_status=137)
    assert diagnosis is not None
    assert diagnosis.code == "bad_bind_address"


def test_an_exit_status_goes_before_a_mere_consequence() -> None:
    lines = ["Remote RPC server crashed or returned malformed response"]
    diagnosis = diagnose(lines, source=Source.HEAD, exit_status=137)
    assert diagnosis is not None
    assert diagnosis.code == "killed"


def test_the_worker_that_ran_out_of_memory_is_named_not_the_head_that_noticed() -> None:
    logs = {
        "head": log(Source.HEAD, "logs", "head_worker_oom.b10434.txt", 134),
        "idle": log(Source.WORKER, "samples", "banner_v3.0.0_cuda_readme.txt"),
        "small": log(Source.WORKER, "logs", "worker_oom.b10434.txt"),
    }
    found = diagnose_cluster(logs)
    assert found is not None
    assert (found[0], found[1].code) == ("small", "out_of_memory_request")


def test_a_killed_worker_explains_the_head_that_could_not_connect() -> None:
    logs = {
        "head": log(Source.HEAD, "logs", "head_rpc_none.b10434.txt", 1),
        "worker": log(Source.WORKER, "logs", "worker_killed.b10434.txt", 137),
    }
    found = diagnose_cluster(logs)
    assert found is not None
    assert (found[0], found[1].code) == ("worker", "killed")


def test_the_heads_own_cause_goes_before_a_worker_that_lost_its_head() -> None:
    logs = {
        "head": log(Source.HEAD, "logs", "head_trunc.b10434.txt", 1),
        "worker": NodeLog(Source.WORKER, ("recv failed (bytes_recv=0, size_to_recv=8)",)),
    }
    found = diagnose_cluster(logs)
    assert found is not None
    assert (found[0], found[1].code) == ("head", "model_truncated")


def test_when_no_worker_says_anything_the_head_points_at_the_workers() -> None:
    logs = {
        "head": log(Source.HEAD, "logs", "head_worker_killed.b10434.txt"),
        "worker": NodeLog(Source.WORKER, ()),
    }
    found = diagnose_cluster(logs)
    assert found is not None
    assert (found[0], found[1].code, found[1].blames_worker) == ("head", "worker_died", True)
    assert found[1].rank is Rank.CONSEQUENCE


def test_silent_logs_tell_nothing() -> None:
    assert diagnose_cluster({}) is None
    assert diagnose_cluster({"worker": NodeLog(Source.WORKER, ("Accepted client connection",))}) is None


def test_every_entry_says_cause_next_step_and_where_it_comes_from() -> None:
    rows = TABLE["lines"]
    assert all(row["cause"] and row["next"] and row["cases"] and row["match"] for row in rows)
    assert len({row["code"] for row in rows}) == len(rows)


def test_every_pattern_has_the_names_that_its_texts_use() -> None:
    for row in TABLE["lines"]:
        texts = row["cause"] + row["next"]
        names = {name for _, name, _, _ in string.Formatter().parse(texts) if name}
        for pattern in row["match"]:
            assert names <= set(re.compile(pattern).groupindex), (row["code"], pattern)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.text(max_size=120), max_size=6), st.sampled_from(Source), st.none() | st.integers(-64, 300))
def test_any_lines_can_be_diagnosed(lines: list[str], source: Source, exit_status: int | None) -> None:
    diagnosis = diagnose(lines, source=source, exit_status=exit_status)
    assert diagnosis is None or diagnosis.cause


@pytest.mark.parametrize(
    "part",
    [" ", "a", "'", "(", ": ", "failed to allocate ", "failed to open '", "GGML_ASSERT(", "--", "RPC", "exec: ",
     "Permission denied: ", "no CUDA", "failed to initialize CUDA: ", "K cache type ", "fattn", "op = ", "\\{"],
)  # fmt: skip
def test_a_long_line_is_read_in_little_time(part: str) -> None:
    line = part * (100_000 // len(part))
    started = time.process_time()
    diagnose([line] * 20, source=Source.HEAD)
    assert time.process_time() - started < 2.0
