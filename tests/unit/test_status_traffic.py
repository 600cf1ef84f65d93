"""What is told of a head's traffic is its clients': what `status` itself asks for is none."""

from __future__ import annotations

import asyncio

import httpx

from clusterctl.cluster.head_api import HeadApi
from clusterctl.cluster.prober import Prober
from clusterctl.cluster.progress import Motion, Verdict
from clusterctl.reports import TrafficReport

METRICS = "llamacpp:prompt_tokens_seconds {}\nllamacpp:predicted_tokens_seconds {}\n"


class Head:
    """Answers as an idle llama-server does, whose averages begin anew whenever they are asked for."""

    def __init__(self) -> None:
        self.averages = (0.0, 0.0)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/slots":
            return httpx.Response(200, json=[{"id": 0, "is_processing": False}])
        if request.url.path == "/metrics":
            told, self.averages = self.averages, (0.0, 0.0)
            return httpx.Response(200, text=METRICS.format(*told))
        self.averages = (31.0, 9000.0)
        return httpx.Response(200, json={"content": " world"})


def traffic_of_looks(head: Head, looks: int) -> list[TrafficReport]:
    async def look() -> list[TrafficReport]:
        async with httpx.AsyncClient(transport=httpx.MockTransport(head), base_url="http://head") as client:
            # Each `status` is a new prober.
            probes = [
                await Prober().probe(HeadApi(client), Motion({}, {}, None), may_ask=True) for _ in range(looks)
            ]
        assert all(probed.progress.verdict is Verdict.PROVEN for probed in probes)
        return [probed.traffic for probed in probes]

    return asyncio.run(look())


def test_the_token_that_status_asks_for_is_no_traffic() -> None:
    for traffic in traffic_of_looks(Head(), 3):
        assert (traffic.prompt_tok_s, traffic.decode_tok_s) == (None, None)
        assert (traffic.slots_busy, traffic.slots_total) == (0, 1)


def test_what_clients_got_since_the_last_look_is_told_once() -> None:
    head = Head()
    head.averages = (120.0, 11.5)
    first, second = traffic_of_looks(head, 2)
    assert (first.prompt_tok_s, first.decode_tok_s) == (120.0, 11.5)
    assert second.decode_tok_s is None
