"""`bench` against the head's own clock, its control arms and `connect`, on a real cluster over SSH."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.lab.conftest import MakeLab
from tests.lab.lab import Lab, NodeSpec
from tests.lab.operator import HTTP_PORT, Operator, operator_of, remains
from tests.lab.test_lab_itself import wait_until

SHORT = ("--prompt-tokens", "32", "--decode-tokens", "24", "--repetitions", "3")


@pytest.fixture(scope="module")
def lab(make_lab: MakeLab) -> Lab:
    return make_lab([NodeSpec("head", models=True), NodeSpec("left"), NodeSpec("right")])


@pytest.fixture(scope="module")
def operator(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Operator:
    served = operator_of(lab, tmp_path_factory.mktemp("operator"), workers=["left", "right"])
    return served.with_recipe(expect={"decode_tok_s": 1.0}, parallel=2, context=1024)


@pytest.fixture(scope="module")
def brought_up(operator: Operator) -> Iterator[None]:
    operator.succeed("up")
    yield
    operator.succeed("down")
    assert remains(operator.lab) == {}


def kept(operator: Operator) -> list[dict[str, Any]]:
    file = operator.lab.ssh_home / ".local/state/clusterctl/bench/lab.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_nothing_is_measured_or_forwarded_while_the_head_is_down(operator: Operator) -> None:
    for arguments in (("bench",), ("connect", "--port", "0")):
        failed = operator.run(*arguments)
        assert failed.exit_code == 7
        assert "the head does not run" in failed.stderr
        assert "clusterctl up" in failed.stderr


@pytest.mark.usefixtures("brought_up")
def test_bench_agrees_with_the_heads_own_clock(operator: Operator) -> None:
    arguments = ("--prompt-tokens", "256", "--decode-tokens", "96", "--repetitions", "3")
    document = operator.succeed("bench", "--json", *arguments).document
    [run] = document["runs"]
    figures = run["loads"][0]["figures"]
    for ours, heads in (("decode_tok_s", "head_decode_tok_s"), ("prefill_tok_s", "head_prefill_tok_s")):
        assert figures[ours]["median"] == pytest.approx(figures[heads]["median"], rel=0.03), ours
        assert figures[ours]["count"] == 3
    assert run["warnings"] == []
    assert figures["first_token_s"]["median"] < figures["request_s"]["median"]


@pytest.mark.usefixtures("brought_up")
def test_a_run_is_kept_with_build_plan_and_machines(operator: Operator) -> None:
    operator.succeed("bench", *SHORT, "--name", "first")
    run = kept(operator)[-1]
    assert (run["name"], run["arm"], run["recipe"], run["cluster"]) == ("first", "cluster", "smollm2", "lab")
    assert "7e4c0a9" in run["build"]
    assert [(place["node"], place["device"]) for place in run["plan"]] == [("left", "CPU"), ("right", "CPU")]
    assert sum(place["layers"] for place in run["plan"]) == 31
    assert [node["node"] for node in run["hardware"]["nodes"]] == ["left", "right", "head"]
    assert (run["slots"], run["context_per_slot"]) == (2, 512)


@pytest.mark.usefixtures("brought_up")
def test_more_clients_than_slots_wait_and_this_is_said(operator: Operator) -> None:
    document = operator.succeed("bench", "--json", *SHORT, "--concurrency", "1,4").document
    [run] = document["runs"]
    one, four = run["loads"]
    assert (one["concurrency"], four["concurrency"]) == (1, 4)
    assert four["figures"]["first_token_s"]["highest"] > one["figures"]["first_token_s"]["highest"]
    assert four["figures"]["decode_tok_s"]["count"] == 12
    assert any("4 clients share 2 slots" in warning for warning in run["warnings"])


@pytest.mark.usefixtures("brought_up")
def test_a_run_is_compared_with_all_that_was_asked_for(operator: Operator, tmp_path: Path) -> None:
    operator.succeed("bench", *SHORT, "--name", "base")
    bases = ("--compare", "base", "--compare", "last", "--compare", "expect", "--compare", "estimate")
    files = ("--markdown", str(tmp_path / "run.md"), "--plot", str(tmp_path / "run.svg"))
    document = operator.succeed("bench", "--json", *SHORT, *bases, *files).document
    named, last, expect, estimate = document["comparisons"]
    assert named["base"] == last["base"]
    assert named["differences"] == []
    assert {change["figure"] for change in named["changes"]} >= {"decode_tok_s", "prefill_tok_s", "request_s"}
    assert [(change["figure"], change["verdict"]) for change in expect["changes"]] == [("decode_tok_s", "better")]
    assert [change["figure"] for change in estimate["changes"]] == ["decode_tok_s"]
    assert "| cluster, 1 client |" in (tmp_path / "run.md").read_text()
    assert "<svg" in (tmp_path / "run.svg").read_text()


@pytest.mark.usefixtures("brought_up")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--prompt-tokens", "456", "--decode-tokens", "57"), "exceed the 512 tokens"),
        (("--compare", "never"), "no run named `never`"),
        (("--name", "last"), "a meaning of its own"),
        (("--concurrency", "0"), "numbers from 1 to 64"),
        (("--replace",), "without --control"),
        (("--plot", "/tmp/bench.gif"), ".svg or .png"),
    ],
)
def test_what_can_not_be_measured_is_refused_at_once(
    operator: Operator, arguments: tuple[str, ...], words: str
) -> None:
    refused = operator.run("bench", *arguments)
    assert refused.exit_code == 2
    assert words in refused.stderr


@pytest.mark.usefixtures("brought_up")
def test_figures_of_another_recipe_are_not_kept_under_this_ones_name(operator: Operator) -> None:
    refused = operator.with_recipe(name="other", context=384).run("bench", *SHORT)
    assert refused.exit_code == 2
    assert "not started from recipe other" in refused.stderr


@pytest.mark.usefixtures("brought_up")
def test_a_running_cluster_is_not_ended_for_control_arms_unasked(operator: Operator) -> None:
    refused = operator.run("bench", "--control", *SHORT)
    assert refused.exit_code == 6
    assert "--replace" in refused.stderr
    assert operator.status()["state"] == "up"


@pytest.mark.usefixtures("brought_up")
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_connect_brings_the_head_to_this_machine_until_it_is_ended(
    operator: Operator, end: signal.Signals
) -> None:
    with operator.running("connect", "--port", "0", "--json") as connecting:
        wait_until(lambda: connecting.printed.endswith("\n"))
        document = json.loads(connecting.printed)
        assert (document["node"], document["target"]) == ("head", f"127.0.0.1:{HTTP_PORT}")
        models = httpx.get(f"{document['url']}/v1/models", trust_env=False).json()
        assert models["data"][0]["id"]
        finished = connecting.interrupt(end)
    assert (finished.exit_code, finished.stderr) == (0, "")
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{document['url']}/health", trust_env=False)


@pytest.mark.usefixtures("brought_up")
def test_connect_does_not_take_a_port_from_another(operator: Operator) -> None:
    with operator.running("connect", "--port", "0", "--json") as connecting:
        wait_until(lambda: connecting.printed.endswith("\n"))
        port = json.loads(connecting.printed)["url"].rpartition(":")[2]
        refused = operator.run("connect", "--port", port)
    assert refused.exit_code == 2
    assert "--port" in refused.stderr


@pytest.mark.usefixtures("brought_up")
def test_control_measures_every_arm_and_leaves_the_cluster_up(operator: Operator) -> None:
    brief = ("--prompt-tokens", "16", "--decode-tokens", "16", "--repetitions", "1", "--warmup", "0")
    arguments = ("--control", "--replace", "--json", *brief, "--concurrency", "1,2")
    document = operator.succeed("bench", *arguments).document
    assert [run["arm"] for run in document["runs"]] == ["alone", "alone, 4 slots", "cluster"]
    lone, slots, cluster = document["runs"]
    assert [node["node"] for node in lone["hardware"]["nodes"]] == ["head"]
    assert (lone["slots"], slots["slots"], cluster["slots"]) == (2, 4, 2)
    assert [load["concurrency"] for load in cluster["loads"]] == [1, 2]
    assert [skipped["arm"] for skipped in document["skipped"]] == ["llama-bench"]
    assert [comparison["base"] for comparison in document["comparisons"]] == ["alone", "alone, 4 slots"]
    assert [run["arm"] for run in kept(operator)[-3:]] == ["alone", "alone, 4 slots", "cluster"]
    assert operator.status()["state"] == "up"
