"""A cluster of a head and two workers that serves: what it answers, and what clusterctl says of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import httpx
import pytest

from tests.lab.conftest import MakeLab
from tests.lab.generation import generating
from tests.lab.inspection import Knocks, Listener
from tests.lab.lab import Lab, NodeSpec
from tests.lab.operator import HTTP_PORT, RPC_PORT, Finished, Operator, operator_of, remains
from tests.lab.test_lab_itself import reaches, wait_until

LLAMA_SERVER = "/opt/llama.cpp/bin/llama-server"
TOKENS, ALTERNATIVES = 24, 5
QUESTION = {
    "prompt": "The capital of France is",
    "n_predict": TOKENS,
    "temperature": 0,
    "n_probs": ALTERNATIVES,
    "cache_prompt": False,
}


@pytest.fixture(scope="module")
def lab(make_lab: MakeLab) -> Lab:
    return make_lab([NodeSpec("head", models=True), NodeSpec("left"), NodeSpec("right")])


@pytest.fixture(scope="module")
def operator(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Operator:
    return operator_of(lab, tmp_path_factory.mktemp("operator"), workers=["left", "right"])


@pytest.fixture(scope="module")
def lone_answer(lab: Lab) -> dict[str, Any]:
    """What llama.cpp answers on one machine, without RPC and without clusterctl."""
    options = f"-m {lab.model_path} -c 512 -np 1 -t 1 --port {HTTP_PORT}"
    lab.ssh("head", f"{LLAMA_SERVER} {options} >/dev/null 2>&1 </dev/null & echo $! >~/lone.pid")
    wait_until(lambda: ask_health(lab) == 200)
    answer = ask(lab)
    lab.ssh("head", "kill $(cat ~/lone.pid); rm ~/lone.pid")
    wait_until(lambda: Listener("127.0.0.1", HTTP_PORT) not in lab.nodes["head"].listeners())
    return answer


@pytest.fixture(scope="module")
def brought_up(operator: Operator, lone_answer: dict[str, Any]) -> Iterator[Finished]:
    yield operator.succeed("up", "--json")
    operator.succeed("down")
    assert remains(operator.lab) == {}


def ask_health(lab: Lab) -> int | None:
    with lab.nodes["head"].network():
        try:
            return httpx.get(f"http://127.0.0.1:{HTTP_PORT}/health").status_code
        except httpx.TransportError:
            return None


def ask(lab: Lab) -> dict[str, Any]:
    with lab.nodes["head"].network():
        answer = httpx.post(f"http://127.0.0.1:{HTTP_PORT}/completion", json=QUESTION, timeout=60)
    document = answer.json()
    assert isinstance(document, dict)
    return document


def log_probabilities(answer: dict[str, Any]) -> list[float]:
    return [each["logprob"] for token in answer["completion_probabilities"] for each in token["top_logprobs"]]


def assert_same_answer(answer: dict[str, Any], other: dict[str, Any]) -> None:
    assert answer["content"] == other["content"]
    assert len(log_probabilities(answer)) == TOKENS * ALTERNATIVES
    assert log_probabilities(answer) == pytest.approx(log_probabilities(other), abs=5e-4)


def test_a_model_split_over_two_workers_answers_as_on_one_machine(
    lab: Lab, brought_up: Finished, lone_answer: dict[str, Any]
) -> None:
    assert "Paris" in lone_answer["content"]
    assert_same_answer(ask(lab), lone_answer)


def test_up_tells_its_endpoint_and_every_step(brought_up: Finished) -> None:
    document = brought_up.document
    assert (document["ok"], document["changed"], document["left"]) == (True, True, [])
    assert document["endpoint"] == f"http://127.0.0.1:{HTTP_PORT}"
    steps = {(step["title"], step["node"]): step["outcome"] for step in document["steps"]}
    assert steps["start the worker", "left"] == "done"
    assert steps["start the head", "head"] == "done"


def test_workers_listen_on_their_private_address_only(lab: Lab, brought_up: Finished) -> None:
    for name in ("left", "right"):
        worker = lab.nodes[name]
        assert remains(lab)[name].ports == (f"{worker.private_address}:{RPC_PORT}",)
        assert not reaches(worker.public_address, RPC_PORT)
        with lab.nodes["head"].network():
            assert not reaches(worker.public_address, RPC_PORT)
            assert reaches(worker.private_address, RPC_PORT)
    assert remains(lab)["head"].ports == (f"127.0.0.1:{HTTP_PORT}",)


def test_a_second_up_changes_nothing(operator: Operator, brought_up: Finished) -> None:
    before = operator.status()
    again = operator.succeed("up", "--json").document
    assert (again["ok"], again["changed"]) == (True, False)
    after = operator.status()
    assert [after["head"]["pid"], *(worker["pid"] for worker in after["workers"])] == [
        before["head"]["pid"],
        *(worker["pid"] for worker in before["workers"]),
    ]


def test_a_second_up_finds_a_head_that_is_busy_with_an_answer_at_work(
    lab: Lab, operator: Operator, brought_up: Finished
) -> None:
    with generating(lab):
        again = operator.succeed("up", "--json").document
    assert (again["ok"], again["changed"]) == (True, False)


def test_status_shows_who_serves_where(lab: Lab, operator: Operator, brought_up: Finished) -> None:
    status = operator.succeed("status", "--json").document
    assert (status["state"], status["problems"]) == ("up", [])
    assert (status["head"]["node"], status["head"]["health"]) == ("head", "ok")
    assert status["head"]["url"] == f"http://127.0.0.1:{HTTP_PORT}"
    pids = {process.argv[0]: process.pid for process in lab.nodes["head"].processes()}
    assert status["head"]["pid"] == pids[LLAMA_SERVER]
    for worker in status["workers"]:
        endpoint = f"{lab.nodes[worker['node']].private_address}:{RPC_PORT}"
        assert (worker["state"], worker["endpoint"], worker["listening_on"]) == ("serving", endpoint, [endpoint])
    assert status["traffic"]["slots_total"] == 1


def test_status_and_check_do_not_disturb_a_serving_cluster(
    lab: Lab, operator: Operator, brought_up: Finished, lone_answer: dict[str, Any]
) -> None:
    operator.succeed("status")
    operator.succeed("check")
    assert_same_answer(ask(lab), lone_answer)


def test_check_leaves_a_busy_worker_alone(lab: Lab, operator: Operator, brought_up: Finished) -> None:
    with lab.nodes["left"].network():
        knocks = Knocks()
    with closing(knocks), generating(lab) as client:
        tokens = client.tokens
        check = operator.succeed("check", "--json").document
        wait_until(lambda: client.tokens > tokens)
        assert RPC_PORT not in knocks.ports()
        with lab.nodes["head"].network():
            assert reaches(lab.nodes["left"].private_address, RPC_PORT)
        assert knocks.ports() == [RPC_PORT]
    workers = [node for node in check["nodes"] if node["role"] == "worker"]
    (protocol,) = {worker["rpc_protocol"] for worker in operator.status()["workers"]}
    assert f", RPC {protocol}, answers the head" in brought_up.stderr
    assert [(node["rpc_protocol"], node["problems"]) for node in workers] == [(protocol, []), (protocol, [])]


def test_plan_gives_the_fields_that_scripts_rely_on(lab: Lab, operator: Operator, brought_up: Finished) -> None:
    plan = operator.succeed("plan", "--json").document
    assert (plan["fits"], plan["n_layer"], sum(plan["tensor_split"])) == (True, 30, 31)
    assert [device["node"] for device in plan["devices"]] == ["left", "right"]
    assert plan["device_order"] == [device["rpc_name"] for device in plan["devices"]] == ["RPC0", "RPC1"]
    sizes = {"model_mib", "kv_mib", "compute_mib", "total_mib", "budget_mib"}
    for device in plan["devices"]:
        assert device.keys() >= {"node", "device", "rpc_name", "layers", "output"} | sizes
    assert plan["host"].keys() >= sizes
    assert [command["node"] for command in plan["commands"]] == ["left", "right", "head"]
    endpoints = ",".join(f"{lab.nodes[name].private_address}:{RPC_PORT}" for name in ("left", "right"))
    head = plan["commands"][-1]["argv"]
    assert head[head.index("--rpc") + 1] == endpoints
    assert plan["estimate"].keys() >= {"decode_tok_s", "prefill_tok_s", "load_s", "bound_by"}
    assert isinstance(plan["advice"], list)


def test_the_head_runs_the_very_command_that_plan_shows(
    lab: Lab, operator: Operator, brought_up: Finished
) -> None:
    planned = {tuple(command["argv"]) for command in operator.succeed("plan", "--json").document["commands"]}
    running = {process.argv for node in lab.nodes.values() for process in node.processes()}
    assert planned <= running


def test_check_gives_the_fields_that_scripts_rely_on(lab: Lab, operator: Operator, brought_up: Finished) -> None:
    check = operator.succeed("check", "--json").document
    assert check["ok"] is True
    assert check["skew"]["status"] == "match"
    assert [group["nodes"] for group in check["skew"]["groups"]] == [["left", "right", "head"]]
    nodes = {node["name"]: node for node in check["nodes"]}
    for name, node in nodes.items():
        assert (node["reachable"], node["os"], node["arch"]) == (True, "linux", "x86_64")
        assert node["build"]["commit"] == "7e4c0a9"
        assert node.keys() >= {"role", "rpc_protocol", "programs", "rpc_address", "devices"}
        assert node["programs"]["llama_server"] == LLAMA_SERVER, name
    told = {name: [problem["code"] for problem in node["problems"]] for name, node in nodes.items()}
    # These builds tell no number.
    assert told == {"left": [], "right": [], "head": ["faults-not-ruled-out"]}
    assert nodes["left"]["rpc_address"] == lab.nodes["left"].private_address
    assert nodes["left"]["devices"][0].keys() >= {"name", "description", "total_mib", "free_mib"}


def test_logs_name_the_node_before_each_line(operator: Operator, brought_up: Finished) -> None:
    shown = operator.succeed("logs", "-n", "5").stdout.splitlines()
    assert {line.split(" ", 1)[0] for line in shown} == {"head", "left", "right"}
    assert all("│" in line for line in shown)
    one = operator.succeed("logs", "left", "-n", "2", "--json").document
    assert [line["node"] for line in one["lines"]] == ["left", "left"]


def test_following_logs_shows_what_is_added_and_ends_on_interrupt(
    lab: Lab, operator: Operator, brought_up: Finished
) -> None:
    with operator.running("logs", "head", "-f", "-n", "1") as following:
        wait_until(lambda: following.printed.count("\n") >= 1)
        ask(lab)
        wait_until(lambda: "24 tokens" in following.printed)
        ended = following.interrupt()
    assert (ended.exit_code, ended.stderr) == (0, "")
    assert operator.status()["state"] == "up"


def test_another_recipe_is_refused_until_it_is_to_replace(
    lab: Lab, operator: Operator, brought_up: Finished, lone_answer: dict[str, Any]
) -> None:
    unequal = operator.with_recipe(split={"strategy": "manual", "layers": {"left": 24, "right": 6}})
    before = operator.status()["head"]["pid"]
    refused = unequal.run("up")
    assert refused.exit_code == 6
    assert "--replace" in refused.stderr
    assert operator.status()["head"]["pid"] == before

    assert unequal.succeed("up", "--replace", "--json").document["changed"] is True
    argv = next(process.argv for process in lab.nodes["head"].processes() if process.argv[0] == LLAMA_SERVER)
    assert argv[argv.index("--tensor-split") + 1] == "24,7"
    assert_same_answer(ask(lab), lone_answer)


def test_json_is_one_document_also_for_an_error(operator: Operator, brought_up: Finished) -> None:
    failed = operator.with_recipe(model={"path": "/models/none.gguf"}).run("up", "--json")
    assert failed.exit_code != 0
    assert json.loads(failed.stdout)["ok"] is False
