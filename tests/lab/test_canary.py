"""Sense told from garbage on a real cluster whose worker computes with spoilt weights and says nothing of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from statistics import fmean

import httpx
import pytest

from clusterctl.cluster.canary import sense_check
from clusterctl.cluster.head_api import HeadApi, head_api
from clusterctl.llama.sense import Sense, Verdict
from clusterctl.remote.local import LocalTransport
from tests.lab.conftest import MakeLab
from tests.lab.lab import Lab, NodeSpec
from tests.lab.node import Node
from tests.lab.operator import HTTP_PORT, Operator, operator_of, remains
from tests.lab.test_lab_itself import wait_until

CACHE = ".cache/clusterctl/lab"
TO_THREE_DECIMALS = 0.0005


@pytest.fixture(scope="module")
def lab(make_lab: MakeLab) -> Lab:
    return make_lab([NodeSpec("head", models=True), NodeSpec("worker")])


@pytest.fixture(scope="module")
def operator(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Operator:
    operator = operator_of(lab, tmp_path_factory.mktemp("operator"), workers=["worker"])
    return operator.with_node("worker", rpc={"cache": True})


@pytest.fixture(scope="module")
def alone(lab: Lab, operator: Operator) -> Sense:
    """What the model gives on one node."""
    return sense_of(operator_of(lab, operator.folder))


@pytest.fixture
def cached(lab: Lab, operator: Operator) -> Iterator[Operator]:
    """The worker keeps the model's largest tensor on its disk."""
    operator.succeed("up")
    operator.succeed("down")
    yield operator
    operator.succeed("down", "--purge-cache")
    assert remains(lab) == {}


def sense_of(operator: Operator, reference: Sense | None = None) -> Sense:
    """Bring a cluster up without waiting for its own judgement, judge it, and take it down."""

    async def check() -> Sense:
        async with head_api(LocalTransport("head"), "127.0.0.1", HTTP_PORT) as api:
            return await sense_check(api, reference.logprobs if reference else None)

    operator.succeed("up", "--no-wait")
    wait_until(lambda: operator.run("status", "--passive", "--json").document["head"]["health"] == "ok")
    with operator.lab.nodes["head"].network():
        sense = asyncio.run(check())
    operator.succeed("down")
    return sense


def spoil_cache(node: Node, every: int, mask: int) -> None:
    """Flip bits of every so many bytes, as a failing disk does in some; llama.cpp reads it without looking."""
    (tensor,) = (node.home / CACHE / "rpc").iterdir()
    spoilt = bytearray(tensor.read_bytes())
    spoilt[::every] = bytes(byte ^ mask for byte in spoilt[::every])
    tensor.write_bytes(spoilt)


def test_a_model_on_one_node_is_sane(alone: Sense) -> None:
    assert alone.verdict is Verdict.SANE
    assert fmean(alone.logprobs) > -0.2


def test_a_cluster_gives_the_probabilities_of_one_node_to_three_decimals(
    lab: Lab, operator: Operator, alone: Sense
) -> None:
    sense = sense_of(operator, alone)
    assert sense.verdict is Verdict.SANE
    assert sense.logprobs == pytest.approx(alone.logprobs, abs=TO_THREE_DECIMALS)
    assert "the same log-probabilities as on one node" in sense.detail
    operator.succeed("down", "--purge-cache")
    assert remains(lab) == {}


def test_a_worker_with_spoilt_weights_raises_no_error_and_is_found_out(lab: Lab, cached: Operator) -> None:
    spoil_cache(lab.nodes["worker"], every=97, mask=0x10)
    sense = sense_of(cached)
    assert sense.verdict is Verdict.BROKEN
    assert fmean(sense.logprobs) < -10


def test_a_little_damage_is_found_out_by_the_reference(lab: Lab, cached: Operator, alone: Sense) -> None:
    spoil_cache(lab.nodes["worker"], every=5000, mask=0xFF)
    sense = sense_of(cached, alone)
    assert sense.verdict is Verdict.BROKEN
    assert "from this model on one node" in sense.detail


def test_a_head_that_does_not_answer_is_not_sane() -> None:
    async def check() -> Sense:
        async with httpx.AsyncClient(base_url="http://127.0.0.1:9") as client:
            return await sense_check(HeadApi(client))

    assert asyncio.run(check()).verdict is Verdict.DOUBTFUL
