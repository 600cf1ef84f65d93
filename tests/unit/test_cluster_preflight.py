"""What is wrong with a node before anything starts, and where a worker listens."""

from __future__ import annotations

from typing import Unpack

import pytest

from clusterctl.cluster.endpoint import rpc_address
from clusterctl.cluster.facts import NodeFacts
from clusterctl.cluster.preflight import judge_node
from clusterctl.cluster.record import Record
from clusterctl.model import Problem, Role, Severity
from tests.unit.cluster_samples import (
    CUDA,
    NODES,
    RECIPE,
    Changes,
    address_row,
    facts,
    help_text,
    inventory,
    kernel_listener,
    listing,
    recipe,
)

DEMO = "/models/demo.gguf"


def node_text(settings: str) -> str:
    """The inventory with more settings for w1."""
    return NODES.replace("{name: w1, role: worker}", f"{{name: w1, role: worker, {settings}}}")


def problems(own: NodeFacts, settings: str = "backend: cuda") -> dict[str, Problem]:
    """The problems of w1 or of the head, by code."""
    known = inventory(node_text(settings))
    asked = recipe() if own.node == "head" else None
    found = judge_node(known, asked, known.node(own.node), own)
    assert [problem.severity for problem in found] == sorted(
        (problem.severity for problem in found), key=list(Severity).index
    )
    return {problem.code: problem for problem in found}


def head(**given: Unpack[Changes]) -> NodeFacts:
    """The head, with the model's file in place."""
    given.setdefault("files", f"1000 1780000000 {DEMO}\n")
    return facts("head", asked_files=(DEMO,), **given)


def test_healthy_nodes_have_no_problems() -> None:
    assert problems(facts("w1")) == {}
    assert problems(head()) == {}


def test_a_missing_program_names_where_was_looked() -> None:
    assert "/usr/bin:/bin" in problems(facts("w1", programs=("llama-server",)))["program-missing"].message
    assert "llama-server or llama" in problems(head(programs=()))["program-missing"].message
    named = problems(facts("w1", programs=()), "llama: {bin_dir: /opt/here}")
    assert named["program-missing"].message.endswith("in /opt/here")


def test_two_worker_programs_are_noted() -> None:
    problem = problems(facts("w1", programs=("rpc-server", "ggml-rpc-server")))["two-worker-programs"]
    assert problem.severity is Severity.NOTE
    assert "/opt/llama/rpc-server is there too" in problem.message


def test_a_missing_library_is_an_error() -> None:
    text = "\tlibcudart.so.12 => not found\n\tlibc.so.6 => /lib/libc.so.6\n\tlibcudart.so.12 => not found\n"
    problem = problems(facts("w1", changes={"worker_libraries": text}))["library-missing"]
    assert problem.severity is Severity.ERROR
    assert problem.message.endswith("lacks libcudart.so.12")


def test_a_head_without_options_or_without_rpc_is_an_error() -> None:
    assert "help-unreadable" in problems(head(changes={"help": "segmentation fault"}))
    lines = help_text("llama-server", "b10092").splitlines()
    without_rpc = "\n".join(line for line in lines if not line.startswith("--rpc"))
    assert "rpc-not-built" in problems(head(changes={"help": without_rpc}))


@pytest.mark.parametrize(
    ("extra", "unknown"),
    [
        ("[--jinja, --seed, '-1', --no-webui]", []),
        ("[--frobnicate, --seed, '7']", ["--frobnicate"]),
        ("[--chat-template, --frobnicate]", []),
        ("[-zz]", ["-zz"]),
    ],
)
def test_an_argument_that_the_heads_build_does_not_know_is_an_error(extra: str, unknown: list[str]) -> None:
    asked = recipe(f"{RECIPE}server: {{extra_args: {extra}}}\n")
    found = [
        problem
        for problem in judge_node(inventory(), asked, inventory().head, head())
        if problem.code == "option-unknown"
    ]
    assert [problem.message.split()[2].rstrip(",") for problem in found] == unknown


@pytest.mark.parametrize("files", [f"missing {DEMO}\n", f"0 1 {DEMO}\n"])
def test_a_missing_or_empty_model_is_an_error(files: str) -> None:
    assert DEMO in problems(head(files=files))["model-missing"].message


def test_a_taken_port_names_its_holder() -> None:
    taken = facts("w1", sockets=kernel_listener(50052), changes={"holders:50052": "77 /usr/bin/python3\n"})
    assert "port 50052 is held by /usr/bin/python3 (pid 77)" in problems(taken)["port-taken"].message


def test_a_port_whose_holder_cannot_be_seen_is_taken_all_the_same() -> None:
    taken = facts("w1", sockets=kernel_listener(50052), changes={"holders:50052": ""})
    assert "another user's process" in problems(taken)["port-taken"].message


@pytest.mark.parametrize("known", [facts("w1", changes={"sockets": ""}), head(changes={"sockets": ""})])
def test_a_port_that_nobody_can_look_at_is_not_taken_for_free(known: NodeFacts) -> None:
    problem = problems(known)["ports-unknown"]
    assert problem.severity is Severity.ERROR
    assert "lsof" in str(problem.hint)


def test_the_heads_port_is_looked_at_too() -> None:
    taken = head(sockets=kernel_listener(8080), changes={"holders:8080": "77 nginx\n"})
    assert "nginx (pid 77)" in problems(taken)["port-taken"].message


@pytest.mark.parametrize(
    ("state", "pid", "is_ours"), [("running", 77, True), ("ended", 77, False), ("running", 78, False)]
)
def test_only_our_own_living_process_may_hold_the_port(state: str, pid: int, is_ours: bool) -> None:
    record = Record("demo", "w1", Role.WORKER, ("/w",), "10.10.0.21", 50052, "b1", "me", "", "")
    changes = {
        "holders:50052": "77 /opt/llama/ggml-rpc-server\n",
        "record:w1": f"{state}\n{pid}\n\nsame\n{record.to_json()}",
    }
    own = facts("w1", sockets=kernel_listener(50052), changes=changes)
    assert ("port-taken" not in problems(own)) is is_ours


def test_devices_that_cannot_be_listed_are_an_error() -> None:
    problem = problems(facts("w1", devices="CUDA error: no driver\n"))["devices-unknown"]
    assert problem.severity is Severity.ERROR
    assert "CUDA error: no driver" in problem.message


def test_a_backend_that_is_not_there_is_an_error() -> None:
    assert "backend-missing" in problems(facts("w1"), "backend: rocm")
    assert "backend-missing" in problems(facts("w1", devices=listing()))


def test_a_device_that_the_inventory_names_must_be_there() -> None:
    problem = problems(facts("w1"), "rpc: {devices: [CUDA0, CUDA1]}")["device-missing"]
    assert "names CUDA1" in problem.message
    assert "CUDA0" in problem.hint


def test_a_device_that_is_not_used_is_noted_with_the_reason() -> None:
    both = listing(CUDA, "BLAS: OpenBLAS (0 MiB, 0 MiB free)")
    assert "BLAS" in problems(facts("w1", devices=both))["device-ignored"].message


def test_memory_that_is_not_told_stops_unless_a_limit_stands_for_it() -> None:
    silent = facts("w1", devices=listing("CUDA0: NVIDIA Thing (0 MiB, 0 MiB free)"))
    assert problems(silent)["memory-unknown"].severity is Severity.ERROR
    assert problems(silent, "memory: {limit_mib: 8000}")["memory-unknown"].severity is not Severity.ERROR


def test_a_head_that_only_serves_needs_no_devices() -> None:
    known = inventory(NODES.replace("role: head}", "role: head, serve_only: true}"))
    bare = facts("head", devices="no driver\n", asked_files=(DEMO,), files=f"1000 1 {DEMO}\n")
    assert judge_node(known, recipe(), known.head, bare) == ()


def address(settings: str, rows: str) -> str | Problem:
    known = inventory(node_text(settings) if settings else NODES)
    return rpc_address(known, known.node("w1"), facts("w1", addresses=rows))


BOTH = address_row("10.10.0.21") + address_row("192.168.1.5", "wlan0")


@pytest.mark.parametrize(
    ("settings", "rows", "found"),
    [
        ("", BOTH, "10.10.0.21"),
        ("rpc: {address: 192.168.1.5}", BOTH, "192.168.1.5"),
        ("rpc: {interface: wlan0}", BOTH, "192.168.1.5"),
        ("rpc: {address: 10.10.0.21, interface: wlan0}", BOTH, "10.10.0.21"),
    ],
)
def test_the_address_is_the_one_that_the_inventory_means(settings: str, rows: str, found: str) -> None:
    assert address(settings, rows) == found


@pytest.mark.parametrize(
    ("settings", "rows", "code", "words"),
    [
        (
            "",
            address_row("192.168.1.5"),
            "address-missing",
            "an address in network 10.10.0.0/24; it has 192.168.1.5",
        ),
        ("", "", "address-missing", "it has none"),
        (
            "rpc: {address: 10.10.0.99}",
            BOTH,
            "address-missing",
            "rpc.address 10.10.0.99; it has 10.10.0.21 on eth0",
        ),
        ("rpc: {interface: usb4}", BOTH, "address-missing", "rpc.interface usb4"),
        (
            "",
            address_row("10.10.0.21") + address_row("10.10.0.22"),
            "address-ambiguous",
            "10.10.0.21, 10.10.0.22",
        ),
    ],
)
def test_an_address_that_is_missing_or_not_clear_is_an_error(
    settings: str, rows: str, code: str, words: str
) -> None:
    problem = address(settings, rows)
    assert isinstance(problem, Problem)
    assert (problem.code, problem.severity) == (code, Severity.ERROR)
    assert words in problem.message
    assert code in problems(facts("w1", addresses=rows), settings or "backend: cuda")
