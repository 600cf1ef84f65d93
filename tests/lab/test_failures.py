"""What goes wrong while or before a cluster runs: dead workers, foreign processes, machines without power."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.lab.conftest import MakeLab
from tests.lab.inspection import Listener
from tests.lab.lab import Lab, NodeSpec
from tests.lab.operator import HTTP_PORT, RPC_PORT, Operator, operator_of, remains
from tests.lab.test_lab_itself import wait_until

CONNECT_TIMEOUT_S = 2
PROGRAM_S = 5  # what `status` may take beyond it, on a busy machine
HTTP_SERVER = "python3 -m http.server"


@pytest.fixture(scope="module")
def lab(make_lab: MakeLab) -> Lab:
    return make_lab([NodeSpec("head", models=True), NodeSpec("left"), NodeSpec("right")])


@pytest.fixture
def operator(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    yield operator_of(lab, tmp_path_factory.mktemp("operator"), workers=["left", "right"])
    assert remains(lab) == {}


@pytest.fixture
def up(operator: Operator) -> Operator:
    operator.succeed("up")
    return operator


@contextmanager
def foreign(lab: Lab, name: str, program: str, address: str, port: int) -> Iterator[int]:
    """A program that clusterctl did not start listens there and is still alive at the end; yields its pid."""
    node = lab.nodes[name]
    pid = int(lab.ssh(name, f"{program} >/dev/null 2>&1 </dev/null & echo $!").stdout)
    try:
        wait_until(lambda: Listener(address, port) in node.listeners())
        yield pid
        assert pid in [process.pid for process in node.processes()]
    finally:
        node.run(["kill", str(pid)])
        wait_until(lambda: pid not in [process.pid for process in node.processes()])


def pid_of(lab: Lab, name: str, program: str) -> int:
    return next(p.pid for p in lab.nodes[name].processes() if p.argv[0].endswith(f"/{program}"))


def test_a_worker_killed_outright_is_named(lab: Lab, up: Operator) -> None:
    lab.nodes["left"].run(["kill", "-9", str(pid_of(lab, "left", "ggml-rpc-server"))])
    degraded = up.run("status", "--json")
    assert degraded.exit_code == 9
    assert degraded.document["state"] == "degraded"
    assert {w["node"]: w["state"] for w in degraded.document["workers"]} == {"left": "stopped", "right": "serving"}
    assert any(problem["message"].startswith("left: ") for problem in degraded.document["problems"])
    assert up.run("up").exit_code == 9
    up.succeed("up", "--replace")
    assert up.status()["state"] == "up"
    up.succeed("down")


def test_a_head_killed_outright_is_started_anew_by_up(lab: Lab, up: Operator) -> None:
    lab.nodes["head"].run(["kill", "-9", str(pid_of(lab, "head", "llama-server"))])
    degraded = up.run("status", "--json")
    assert degraded.exit_code == 9
    assert "head-stopped" in [problem["code"] for problem in degraded.document["problems"]]
    up.succeed("up")
    assert up.status()["state"] == "up"
    up.succeed("down")


def test_a_head_that_was_stopped_is_ended_all_the_same(lab: Lab, up: Operator) -> None:
    lab.nodes["head"].run(["kill", "-STOP", str(pid_of(lab, "head", "llama-server"))])
    assert up.run("status").exit_code == 9
    up.succeed("down")


@pytest.mark.parametrize("command", ["check", "up"])
def test_a_foreign_process_on_the_workers_port_is_named_and_left_alone(
    lab: Lab, operator: Operator, command: str
) -> None:
    address = lab.nodes["left"].private_address
    with foreign(lab, "left", f"{HTTP_SERVER} --bind {address} {RPC_PORT}", address, RPC_PORT) as pid:
        refused = operator.run(command)
        assert refused.exit_code == 6
        said = refused.stdout + refused.stderr
        assert "python3" in said
        assert f"pid {pid}" in said
        assert remains(lab).keys() == {"left"}


def test_a_foreign_process_on_the_heads_port_is_named_and_left_alone(lab: Lab, operator: Operator) -> None:
    program = f"{HTTP_SERVER} --bind 127.0.0.1 {HTTP_PORT}"
    with foreign(lab, "head", program, "127.0.0.1", HTTP_PORT) as pid:
        refused = operator.run("up")
        assert refused.exit_code == 6
        assert f"pid {pid}" in refused.stderr
        assert remains(lab).keys() == {"head"}


def test_a_foreign_process_on_a_dead_workers_port_is_told_by_every_down(lab: Lab, up: Operator) -> None:
    left, worker = lab.nodes["left"], pid_of(lab, "left", "ggml-rpc-server")
    left.run(["kill", "-9", str(worker)])
    wait_until(lambda: worker not in [process.pid for process in left.processes()])
    address = left.private_address
    with foreign(lab, "left", f"{HTTP_SERVER} --bind {address} {RPC_PORT}", address, RPC_PORT) as pid:
        for _ in range(2):
            (told,) = up.run("down", "--json").document["left"]
            assert told["node"] == "left"
            assert f"port {RPC_PORT} is still open, held by " in told["reason"]
            assert f"(pid {pid})" in told["reason"]
    assert up.succeed("down").stdout == "down: nothing was running\n"


def test_a_worker_that_somebody_else_started_is_never_ended(lab: Lab, operator: Operator) -> None:
    address = lab.nodes["left"].private_address
    program = f"/opt/llama.cpp/bin/ggml-rpc-server -H {address} -p {RPC_PORT}"
    with foreign(lab, "left", program, address, RPC_PORT):
        assert operator.run("up").exit_code == 6
        operator.succeed("down", "--force")


def test_a_worker_without_power_is_told_within_the_timeout(lab: Lab, up: Operator) -> None:
    lab.nodes["left"].power_off()
    hasty = up.with_node("left", ssh={"connect_timeout": CONNECT_TIMEOUT_S})
    began = time.monotonic()
    status = hasty.run("status", "--json")
    assert time.monotonic() - began < CONNECT_TIMEOUT_S + PROGRAM_S
    assert status.exit_code == 9
    assert {w["node"]: w["state"] for w in status.document["workers"]}["left"] == "unreachable"
    assert "left: " in " ".join(problem["message"] for problem in status.document["problems"])
    assert hasty.run("up").exit_code == 3

    left = hasty.run("down", "--json")
    assert left.exit_code == 9
    assert [each["node"] for each in left.document["left"]] == ["left"]
    assert hasty.run("status").exit_code == 3

    lab.nodes["left"].power_on()
    assert remains(lab).keys() == {"head", "left"}
    up.without_node("left").succeed("down")  # the head remembers it
    assert remains(lab) == {}
    assert up.status()["state"] == "down"


def test_a_head_without_power_is_told_and_its_workers_are_cleared_by_force(lab: Lab, up: Operator) -> None:
    lab.nodes["head"].power_off()
    hasty = up.with_node("head", ssh={"connect_timeout": CONNECT_TIMEOUT_S})
    status = hasty.run("status", "--json")
    assert (status.exit_code, status.document["state"]) == (3, "unknown")
    assert status.document["head"]["health"] == "unreachable"
    assert hasty.run("down").exit_code == 9
    forced = hasty.run("down", "--force", "--json")
    assert forced.exit_code == 9
    assert [each["node"] for each in forced.document["left"]] == ["head"]

    lab.nodes["head"].power_on()
    assert remains(lab).keys() == {"head"}
    up.succeed("down")
    assert remains(lab) == {}


def test_after_a_power_loss_up_starts_the_cluster_anew(lab: Lab, up: Operator) -> None:
    for name in lab.nodes:
        lab.nodes[name].power_off()
        lab.nodes[name].power_on()
    assert up.succeed("status", "--json").document["state"] == "down"
    up.succeed("up")
    assert up.status()["state"] == "up"
    up.succeed("down")


def test_a_private_network_that_is_cut_is_told_from_the_heads_side(lab: Lab, operator: Operator) -> None:
    lab.nodes["right"].cut_link(["private"])
    failed = operator.run("up")
    lab.nodes["right"].restore_link()
    assert failed.exit_code == 6
    assert f"right: the head can't reach {lab.nodes['right'].private_address}:{RPC_PORT}" in failed.stderr
    assert remains(lab) == {}
