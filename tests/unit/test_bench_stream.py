"""The head's stream, read event by event, whatever it may hold."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.bench.prompt import prompt_text, prompt_tokens
from clusterctl.bench.stream import Timings, parse_event, parse_timings, stream_answer
from clusterctl.errors import ClusterctlError

TIMINGS = {"prompt_n": 7, "prompt_ms": 9.5, "predicted_n": 2, "predicted_ms": 20.0}
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def event(data: Mapping[str, object]) -> str:
    return f"data: {json.dumps(data)}\n\n"


@asynccontextmanager
async def head_that_answers(body: str, status: str = "200 OK") -> AsyncIterator[httpx.AsyncClient]:
    """A server that gives one answer to whoever asks, and closes."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 {status}\r\nContent-Type: text/event-stream\r\n\r\n{body}".encode())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
        yield client


async def test_tokens_are_counted_as_they_come_and_the_last_event_brings_the_timings() -> None:
    body = event({"tokens_predicted": 1, "stop": False}) + event({"tokens_predicted": 2, "stop": False})
    body += event({"tokens_predicted": 2, "stop": True, "timings": TIMINGS})
    async with head_that_answers(body) as client:
        answer = await stream_answer(client, [1, 2, 3], 2)
    assert [arrival.tokens for arrival in answer.arrivals] == [1, 2]
    assert answer.began_s <= answer.arrivals[0].at_s <= answer.arrivals[1].at_s <= answer.ended_s
    assert answer.timings == Timings(0, 7, 9.5, 2, 20.0)


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ('{"error":{"message":"the request exceeds the context"}}', "400 Bad Request", "exceeds the context"),
        (event({"error": {"message": "out of memory"}}), "200 OK", "out of memory"),
        ('error: {"message":"old builds say it so"}\n\n', "200 OK", "old builds say it so"),
        (event({"tokens_predicted": 1}), "200 OK", "ended after 1 events, without its timings"),
        ("", "200 OK", "ended after 0 events"),
        ("data: <html>\n\n", "200 OK", "not JSON"),
    ],
)
async def test_a_head_that_refuses_is_quoted(body: str, status: str, words: str) -> None:
    async with head_that_answers(body, status) as client:
        with pytest.raises(ClusterctlError, match=words):
            await stream_answer(client, [1], 2)


@pytest.mark.parametrize("line", ["", ": keep-alive", "event: message", "id: 3", "data: [DONE]"])
def test_a_line_without_an_event_is_passed_over(line: str) -> None:
    assert parse_event(line) is None


@given(st.text(max_size=50), json_values)
def test_no_line_crashes_the_reader(text: str, value: object) -> None:
    for line in (text, f"data: {text}", f"data: {json.dumps(value)}", f"data: {json.dumps({'timings': value})}"):
        try:
            found = parse_event(line)
        except ClusterctlError:
            continue
        if found is not None:
            parse_timings(found)


@given(st.integers(1, 3000), st.lists(st.integers(0, 9), min_size=1, max_size=400))
def test_a_prompt_has_exactly_the_tokens_asked_for(count: int, text: list[int]) -> None:
    assert len(prompt_tokens(text, 3, count)) == count


def test_prompts_of_many_requests_begin_differently() -> None:
    text = list(range(len(prompt_text().split())))
    begins = {tuple(prompt_tokens(text, number, 8)) for number in range(100)}
    assert len(begins) == 100
