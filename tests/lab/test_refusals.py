"""What `up` refuses although every program lives, and what it shows of the program that is at fault."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lab.conftest import MakeLab
from tests.lab.lab import Lab, NodeSpec
from tests.lab.operator import RPC_PORT, Finished, Operator, operator_of, remains

PROGRAMS = "/opt/llama.cpp/bin"
WRAPPED = "/root/wrapped"


@pytest.fixture(scope="module")
def lab(make_lab: MakeLab) -> Lab:
    return make_lab([NodeSpec("head", models=True), NodeSpec("worker")])


@pytest.fixture
def operator(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    """Each node has the programs of its build in a directory of its own."""
    for node in lab.nodes:
        lab.ssh(node, f"mkdir {WRAPPED}; ln -s {PROGRAMS}/* {WRAPPED}")
    operator = operator_of(lab, tmp_path_factory.mktemp("operator"), workers=["worker"])
    for node in lab.nodes:
        operator = operator.with_node(node, llama={"bin_dir": WRAPPED})
    yield operator
    for node in lab.nodes:
        lab.ssh(node, f"rm -r {WRAPPED}")
    assert remains(lab) == {}


def wrap(lab: Lab, node: str, program: str, flag: str, script: str) -> None:
    """Put a script in the place of a program: with this flag it does what the script says, else what it should."""
    real = f"{PROGRAMS}/{program}"
    lines = ("#!/bin/sh", f'case " $* " in *" {flag} "*) ;; *) exec {real} "$@" ;; esac', f"real={real}", script)
    path = f"{WRAPPED}/{program}"
    lab.ssh(node, f"rm {path}; cat >{path} <<'EOF'\n{chr(10).join(lines)}\nEOF\nchmod +x {path}")


def wrap_worker(lab: Lab, script: str) -> None:
    wrap(lab, "worker", "ggml-rpc-server", "--host", f"echo words of the worker\n{script}")


def wrap_head(lab: Lab, script: str) -> None:
    wrap(lab, "head", "llama-server", "--model", f"echo words of the head\n{script}")


def refused(operator: Operator, words: str) -> Finished:
    """`up` fails, says why, shows the log of the program at fault, and leaves nothing."""
    failed = operator.run("up", "--allow-skew")  # a script names no commit
    assert failed.exit_code == 6, failed.stderr
    assert words in failed.stderr
    assert "clusterctl logs" not in failed.stderr
    assert operator.status()["state"] == "down"
    return failed


def test_a_worker_that_listens_elsewhere_than_planned_is_refused(lab: Lab, operator: Operator) -> None:
    wrap_worker(lab, f"$real --host 0.0.0.0 --port {RPC_PORT}; true")
    address = lab.nodes["worker"].private_address
    failed = refused(operator, f"worker: port {RPC_PORT} is open on 0.0.0.0 instead of {address} alone")
    assert "  | words of the worker" in failed.stderr
    assert "RPC has no password" in failed.stderr


def test_a_port_that_another_process_than_the_workers_holds_is_refused(lab: Lab, operator: Operator) -> None:
    wrap_worker(lab, '$real "$@"; true')
    failed = refused(operator, f"worker: port {RPC_PORT} is held by ")
    assert "not by the worker just started" in failed.stderr
    assert "  | words of the worker" in failed.stderr


def test_a_worker_that_lives_and_never_listens_is_refused(lab: Lab, operator: Operator) -> None:
    wrap_worker(lab, "sleep 1000; true")
    failed = refused(operator, "worker: the worker lives but does not listen on ")
    assert "  | words of the worker" in failed.stderr


def test_a_worker_that_does_not_speak_as_one_is_refused(lab: Lab, operator: Operator) -> None:
    serve = '$s = IO::Socket::INET->new(Listen => 9, LocalAddr => "$ARGV[2]:$ARGV[4]"); '
    answer = "while ($c = $s->accept) { print $c qq(HTTP/1.1 400 Bad Request\\r\\n\\r\\n); close $c }"
    wrap_worker(lab, f'exec perl -MIO::Socket -e \'{serve}{answer}\' "$0" "$@"')
    failed = refused(operator, "is not a llama.cpp RPC server")
    assert "  | words of the worker" in failed.stderr


def test_a_worker_that_the_head_does_not_see_is_refused(lab: Lab, operator: Operator) -> None:
    wrap(lab, "head", "llama-server", "--list-devices", "exec $real --list-devices")
    failed = refused(operator, "worker: the head does not see CPU at ")
    assert "  | Accepted client connection" in failed.stderr


def test_a_head_that_is_healthy_and_completes_nothing_is_refused(lab: Lab, operator: Operator) -> None:
    wrap_head(lab, '$real "$@" --api-key unknown; true')
    failed = refused(operator, "head: the head says it is healthy but completes nothing: HTTP ")
    assert "  | " in failed.stderr


def test_a_head_that_loads_without_a_worker_is_refused(lab: Lab, operator: Operator) -> None:
    wrap_head(lab, f"$real --model {lab.model_path} --ctx-size 512 --port 8080; true")
    failed = refused(operator, "worker: the head's log shows no model buffer at ")
    assert "it loads without this worker" in failed.stderr


def test_a_head_whose_sshd_forbids_connections_is_told_at_once(lab: Lab, operator: Operator) -> None:
    head = lab.nodes["head"]
    config = head.directory / "sshd_config"
    allowed = config.read_text()
    config.write_text(allowed.replace("AllowTcpForwarding yes", "AllowTcpForwarding no"))
    head.power_off()
    head.power_on()
    alone = operator.without_node("worker")
    failed = alone.run("up")
    config.write_text(allowed)
    head.power_off()
    head.power_on()
    assert failed.exit_code == 3
    assert "head: its sshd forbids connections through it" in failed.stderr
    assert "AllowTcpForwarding must be yes or local" in failed.stderr
