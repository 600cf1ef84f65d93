"""When a cluster counts as serving: what a head at work proves, and what a slow answer of a node does not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import httpx
import pytest

from clusterctl.cluster import readiness
from clusterctl.cluster.head_api import HeadApi
from clusterctl.cluster.patience import Limits
from clusterctl.errors import NodesFailed, NodeUnreachable, StartFailed
from clusterctl.remote.command import Command, Output
from clusterctl.remote.local import LocalTransport
from clusterctl.remote.transport import Transport
from tests.unit.programs import CLUSTER, running, says

CLUSTER_OF_TWO = {"head": says("ready"), "w1": says("ready")}


class Head:
    """A llama-server with one slot: `decoded` is what a client got of its answer from look to look."""

    def __init__(self, decoded: Sequence[int] = (), loading: int = 0, completion: int = 200) -> None:
        self.decoded, self.loading, self.completion = list(decoded), loading, completion
        self.asked = 0

    def __call__(self, request: httpx.Request) -> httpx.Response:
        answers: dict[str, Callable[[], httpx.Response]] = {
            "/health": self.answer_health,
            "/slots": self.answer_slots,
            "/metrics": lambda: httpx.Response(501),
            "/completion": self.answer_completion,
        }
        return answers[request.url.path]()

    def answer_health(self) -> httpx.Response:
        self.loading -= 1
        return httpx.Response(503 if self.loading >= 0 else 200)

    def answer_slots(self) -> httpx.Response:
        if not self.decoded:
            return httpx.Response(200, json=[{"id": 0, "is_processing": False}])
        decoded = self.decoded.pop(0) if len(self.decoded) > 1 else self.decoded[0]
        slot = {"id": 0, "is_processing": True, "id_task": 7, "next_token": [{"n_decoded": decoded}]}
        return httpx.Response(200, json=[slot])

    def answer_completion(self) -> httpx.Response:
        self.asked += 1
        return httpx.Response(self.completion, json={"content": " world"})


class Slow(LocalTransport):
    """A node that does not answer in time at first."""

    def __init__(self, node: str, timeouts: int) -> None:
        super().__init__(node)
        self.timeouts = timeouts

    async def _execute(self, command: Command) -> Output:
        if self.timeouts > 0:
            self.timeouts -= 1
            raise TimeoutError
        return await super()._execute(command)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """A token must come at once."""
    monkeypatch.setattr(readiness, "COMPLETION_TIMEOUT_S", 0.05)
    monkeypatch.setattr(readiness, "PROGRESS_INTERVAL_S", 0.05)


async def wait(transports: Mapping[str, Transport], answers: Head) -> None:
    async with httpx.AsyncClient(transport=httpx.MockTransport(answers), base_url="http://head") as client:
        await readiness.wait_until_serving(
            transports, CLUSTER, "head", ["w1"], HeadApi(client), lambda _step: None, Limits(10)
        )


async def test_an_idle_head_is_asked_for_a_token() -> None:
    head = Head()
    async with running(CLUSTER_OF_TWO) as transports:
        await wait(transports, head)
    assert head.asked == 1


async def test_a_head_in_a_long_answer_proves_itself_without_a_token_of_ours() -> None:
    head = Head(decoded=[100, 101, 102])
    async with running(CLUSTER_OF_TWO) as transports:
        await wait(transports, head)
    assert head.asked == 0


@pytest.mark.usefixtures("hasty")
async def test_a_head_that_is_stuck_in_an_answer_completes_nothing() -> None:
    async with running(CLUSTER_OF_TWO) as transports:
        with pytest.raises(StartFailed, match=r"completes nothing: a request has not advanced") as caught:
            await wait(transports, Head(decoded=[100]))
    assert caught.value.node == "head"


async def test_a_head_that_answers_with_an_error_completes_nothing() -> None:
    async with running(CLUSTER_OF_TWO) as transports:
        with pytest.raises(StartFailed, match=r"says it is healthy but completes nothing: HTTP 500"):
            await wait(transports, Head(completion=500))


async def test_a_node_that_is_slow_to_answer_does_not_end_a_load() -> None:
    async with running(CLUSTER_OF_TWO) as transports:
        slow = Slow("w1", timeouts=1)
        await wait({**transports, "w1": slow}, Head(loading=1))
    assert slow.timeouts == 0


async def test_a_dead_worker_ends_a_load_also_if_another_node_is_slow() -> None:
    async with running({"head": says("ready"), "w1": says("done", then="exit 1")}) as transports:
        with pytest.raises(StartFailed, match="the worker has died") as caught:
            await wait({**transports, "head": Slow("head", timeouts=1)}, Head(loading=9))
    assert caught.value.node == "w1"


async def test_a_slow_node_is_not_taken_for_alive_where_that_is_asked() -> None:
    async with running(CLUSTER_OF_TWO) as transports:
        slow = {name: Slow(name, timeouts=1) for name in transports}
        with pytest.raises(NodesFailed) as caught:
            await readiness.demand_alive(slow, CLUSTER, ["head", "w1"])
    assert all(isinstance(error, NodeUnreachable) for error in caught.value.errors)
