"""`status` tells what is true of a cluster that serves, stands still or has lost a part; `down` proves its end."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import httpx
import pytest

from tests.lab.conftest import MakeLab
from tests.lab.lab import Lab, NodeSpec
from tests.lab.node import Node
from tests.lab.operator import HTTP_PORT, RPC_PORT, Operator, operator_of, remains
from tests.lab.test_lab_itself import wait_until

# This build's head says nothing at all while it waits for a worker, which is the harder case.
BUILD = "b10068"
# So long that it never ends by itself before a test has seen what it wants.
LONGEST_ANSWER = 8000
RECORD = "/root/.local/state/clusterctl/lab/cluster.json"


@pytest.fixture(scope="module")
def lab(make_lab: MakeLab) -> Lab:
    return make_lab([NodeSpec("head", build=BUILD, models=True), NodeSpec("worker", build=BUILD)])


@pytest.fixture
def operator(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    operator = operator_of(lab, tmp_path_factory.mktemp("operator"), workers=["worker"])
    yield operator.with_recipe(context=LONGEST_ANSWER + 64)
    assert remains(lab) == {}


@pytest.fixture
def up(operator: Operator) -> Iterator[Operator]:
    operator.succeed("up")
    yield operator
    operator.succeed("down")


URL = f"http://127.0.0.1:{HTTP_PORT}"


def ask_for(tokens: int) -> dict[str, object]:
    return {"prompt": "Once", "n_predict": tokens, "ignore_eos": True}


@contextmanager
def asking(lab: Lab) -> Iterator[None]:
    """A request under way until the body ends."""
    request = {**ask_for(LONGEST_ANSWER), "stream": True}
    with httpx.Client(timeout=60) as client:
        with lab.nodes["head"].network():
            answer = client.send(client.build_request("POST", f"{URL}/completion", json=request), stream=True)
        with closing(answer):
            yield


def pid_of(node: Node, program: str) -> int:
    return next(process.pid for process in node.processes() if process.argv[0].endswith(f"/{program}"))


@contextmanager
def suspended(node: Node) -> Iterator[None]:
    pid = str(pid_of(node, "ggml-rpc-server"))
    node.run(["kill", "-STOP", pid])
    try:
        yield
    finally:
        node.run(["kill", "-CONT", pid])


def codes(status: dict[str, Any]) -> list[str]:
    return [problem["code"] for problem in status["problems"]]


def test_an_idle_head_is_asked_for_a_token(up: Operator) -> None:
    status = up.succeed("status", "--json").document
    assert (status["state"], status["progress"]["verdict"]) == ("up", "proven")
    assert "a token came" in status["progress"]["detail"]


def test_a_head_that_is_not_to_be_asked_is_not(lab: Lab, up: Operator) -> None:
    with lab.nodes["head"].network():
        before = httpx.get(f"{URL}/metrics").text
        assert up.succeed("status", "--passive", "--json").document["progress"]["verdict"] == "unknown"
        after = httpx.get(f"{URL}/metrics").text
    counters = [line for line in before.splitlines() if line.startswith("llamacpp:n_decode_total ")]
    assert counters == [line for line in after.splitlines() if line.startswith("llamacpp:n_decode_total ")]


def test_a_busy_head_is_proven_by_its_own_work(lab: Lab, up: Operator) -> None:
    with asking(lab):
        status = up.succeed("status", "--json").document
    assert (status["state"], status["progress"]["verdict"]) == ("up", "proven")
    assert status["traffic"]["slots_busy"] == 1
    assert status["traffic"]["decode_tok_s"] > 0


def test_what_the_processes_hold_and_who_is_connected_is_told(lab: Lab, up: Operator) -> None:
    status = up.status()
    worker = status["workers"][0]
    assert status["head"]["resident_mib"] > 10
    assert worker["resident_mib"] > 10
    (peer,) = worker["attached"]
    assert peer.startswith(f"{lab.nodes['head'].private_address}:")


def test_a_suspended_worker_is_a_wedged_cluster_told_at_once(lab: Lab, up: Operator) -> None:
    with suspended(lab.nodes["worker"]):
        wedged = up.run("status", "--json")
        assert (wedged.exit_code, wedged.document["state"]) == (9, "wedged")
        assert codes(wedged.document) == ["worker-suspended"]
        assert wedged.document["workers"][0]["state"] == "suspended"
    assert up.status()["state"] == "up"


def test_a_worker_that_cannot_be_heard_is_found_by_the_token_that_does_not_come(lab: Lab, up: Operator) -> None:
    worker = lab.nodes["worker"]
    worker.cut_link(["private"])
    wedged = up.run("status", "--timeout", "2", "--json")
    assert (wedged.exit_code, wedged.document["state"]) == (9, "wedged")
    assert codes(wedged.document) == ["wedged"]
    assert wedged.document["head"]["health"] == "ok"
    # Now the head waits for the worker, and says nothing to anybody.
    again = up.run("status", "--timeout", "2", "--json").document
    assert (again["state"], again["progress"]["verdict"]) == ("wedged", "stuck")
    worker.restore_link(["private"])
    wait_until(lambda: up.status()["state"] == "up")


def test_a_dead_worker_is_told_with_its_cause_and_status_does_not_end_the_head(lab: Lab, up: Operator) -> None:
    worker = lab.nodes["worker"]
    head_pid = up.status()["head"]["pid"]
    worker.run(["kill", "-KILL", str(pid_of(worker, "ggml-rpc-server"))])
    for _ in range(2):
        degraded = up.run("status", "--json")
        assert (degraded.exit_code, degraded.document["state"]) == (9, "degraded")
        assert (degraded.document["head"]["pid"], degraded.document["head"]["health"]) == (head_pid, "ok")
    (problem,) = degraded.document["problems"]
    assert (problem["code"], "exit status 137" in problem["message"]) == ("worker-stopped", True)

    with lab.nodes["head"].network(), pytest.raises(httpx.TransportError):
        httpx.post(f"{URL}/completion", json=ask_for(1), timeout=60)
    wait_until(lambda: up.status()["head"]["health"] == "stopped")
    dead = next(p for p in up.status()["problems"] if p["code"] == "head-stopped")
    assert "(on worker)" in dead["message"]


def test_an_orphan_is_listed_and_ended_only_by_force(lab: Lab, operator: Operator) -> None:
    operator.succeed("up")
    lab.nodes["head"].run(["rm", RECORD])
    status = operator.run("status", "--json")
    assert (status.exit_code, status.document["state"]) == (9, "degraded")
    assert {orphan["name"] for orphan in status.document["orphans"]} == {"head", "worker"}

    kept = operator.run("down", "--json")
    assert kept.exit_code == 9
    assert {left["node"] for left in kept.document["left"]} == {"head", "worker"}
    assert all("--force" in left["reason"] for left in kept.document["left"])
    assert operator.status()["head"]["health"] == "ok"

    assert operator.succeed("down", "--force", "--json").document["left"] == []
    assert remains(lab) == {}


def test_a_node_that_cannot_be_reached_stays_on_record_until_it_can(lab: Lab, operator: Operator) -> None:
    operator.succeed("up")
    worker = lab.nodes["worker"]
    worker.power_off()
    status = operator.run("status", "--json")
    assert status.exit_code == 9
    assert status.document["workers"][0]["state"] == "unreachable"

    left = operator.run("down", "--json")
    assert left.exit_code == 9
    assert [each["node"] for each in left.document["left"]] == ["worker"]
    members = json.loads(lab.nodes["head"].run(["cat", RECORD]).stdout)["members"]
    assert [member["name"] for member in members] == ["worker"]

    worker.power_on()
    assert operator.succeed("down", "--json").document["left"] == []


def test_down_says_what_proves_that_nothing_is_left(operator: Operator) -> None:
    operator.succeed("up")
    down = operator.succeed("down")
    assert f"no process, port {RPC_PORT} closed" in down.stderr
    assert f"no process, port {HTTP_PORT} closed" in down.stderr


def test_a_watch_tells_every_change_over_connections_that_it_keeps(lab: Lab, up: Operator) -> None:
    worker = lab.nodes["worker"]
    with up.running("status", "--watch", "--interval", "0.3", "--timeout", "2") as watch:
        wait_until(lambda: "up: 0 of 1 slots busy" in watch.printed)
        sessions = sshd_sessions(worker)
        with asking(lab):
            wait_until(lambda: "up: 1 of 1 slots busy" in watch.printed)
        wait_until(lambda: watch.printed.count("up: 0 of 1 slots busy") == 2)
        assert sshd_sessions(worker) == sessions
        with suspended(worker):
            wait_until(lambda: "wedged: worker: " in watch.printed)
        wait_until(lambda: watch.printed.count("up: 0 of 1 slots busy") == 3)
        for pid in sessions:
            worker.run(["kill", "-KILL", str(pid)])
        wait_until(lambda: "the SSH connection was lost" in watch.printed)
        wait_until(lambda: watch.printed.count("up: 0 of 1 slots busy") == 4)
        ended = watch.interrupt(signal.SIGINT)
    assert (ended.exit_code, ended.stderr) == (0, "")


def sshd_sessions(node: Node) -> list[int]:
    return [process.pid for process in node.processes() if process.argv[0].startswith("sshd: root")]


def test_the_head_is_asked_with_the_key_of_its_own_file(lab: Lab, operator: Operator) -> None:
    head = lab.nodes["head"]
    (head.home / "key").write_text("secret\n")
    keyed = operator.with_recipe(server={**operator.recipe["server"], "api_key_file": "~/key"})
    keyed.succeed("up")
    assert keyed.status()["progress"]["verdict"] == "proven"
    (head.home / "key").unlink()
    unsure = keyed.succeed("status", "--json").document
    assert (unsure["state"], codes(unsure)) == ("up", ["no-progress-seen"])
    keyed.succeed("down")
