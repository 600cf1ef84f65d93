"""One streamed answer of the head, timed as it arrives."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from clusterctl.errors import ClusterctlError

# A head under load is silent while it reads a long prompt; a dead one closes the connection.
SILENCE_S = 900.0
# Each request gets a connection of its own: llama-server (b11434) now and then closes one that it keeps alive
# just as the next request goes out.
OWN_CONNECTION = {"Connection": "close"}
REFUSED_HINT = "the head's own words; `clusterctl logs` shows the rest"


@dataclass(frozen=True, slots=True)
class Arrival:
    """An event with tokens: when it came, and how many tokens there were by then."""

    at_s: float
    tokens: int


@dataclass(frozen=True, slots=True)
class Timings:
    """The head's own account of one answer.

    `predicted_ms` counts from the first token on, so it holds one token less than `predicted` (llama.cpp
    tools/server; builds until about b10100 divide by all of them in `predicted_per_second`).
    """

    cached: int
    prompt: int
    prompt_ms: float
    predicted: int
    predicted_ms: float
    drafted: int = 0
    accepted: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer; times in seconds of this machine's monotonic clock."""

    began_s: float
    arrivals: tuple[Arrival, ...]
    ended_s: float
    timings: Timings


async def stream_answer(client: httpx.AsyncClient, prompt: Sequence[int], decode_tokens: int) -> Answer:
    """Ask for exactly `decode_tokens` tokens after `prompt`, and time every event.

    Raises:
        ClusterctlError: if the head refuses, or ends without its timings.
        httpx.HTTPError: if the connection breaks.
    """
    request = {
        "prompt": list(prompt),
        "n_predict": decode_tokens,
        "stream": True,
        "cache_prompt": False,
        "ignore_eos": True,
        "temperature": 0,
    }
    arrivals: list[Arrival] = []
    timings = None
    timeout = httpx.Timeout(SILENCE_S, connect=30.0)
    began_s = time.monotonic()
    async with client.stream(
        "POST", "/completion", json=request, headers=OWN_CONNECTION, timeout=timeout
    ) as response:
        if response.status_code != 200:
            body = await response.aread()
            raise _refused(f"HTTP {response.status_code}: {body.decode(errors='replace')[:300]}")
        async for line in response.aiter_lines():
            event = parse_event(line)
            if event is None:
                continue
            tokens = event.get("tokens_predicted")
            if isinstance(tokens, int) and not event.get("stop"):
                arrivals.append(Arrival(time.monotonic(), tokens))
            timings = parse_timings(event) or timings
    if not arrivals or timings is None:
        raise _refused(f"it ended after {len(arrivals)} events, without its timings")
    return Answer(began_s, tuple(arrivals), time.monotonic(), timings)


def parse_event(line: str) -> dict[str, Any] | None:
    """Return the JSON object of a line of a server-sent event; `None` for a line that carries none.

    Raises:
        ClusterctlError: for an event that reports an error, or is not JSON.
    """
    if line.startswith("error:"):
        raise _refused(line.removeprefix("error:").strip()[:300])
    if not line.startswith("data:"):
        return None
    text = line.removeprefix("data:").strip()
    if text == "[DONE]":
        return None
    try:
        event = json.loads(text)
    except ValueError as error:
        raise _refused(f"an event that is not JSON: {text[:100]}") from error
    if not isinstance(event, dict):
        raise _refused(f"an event that is no object: {text[:100]}")
    if "error" in event:
        raise _refused(json.dumps(event["error"])[:300])
    return event


def parse_timings(event: dict[str, Any]) -> Timings | None:
    """Return the timings in an event, `None` if it has none that can be read."""
    raw = event.get("timings")
    if not isinstance(raw, dict):
        return None
    try:
        return Timings(
            cached=int(raw.get("cache_n", 0)),
            prompt=int(raw["prompt_n"]),
            prompt_ms=float(raw["prompt_ms"]),
            predicted=int(raw["predicted_n"]),
            predicted_ms=float(raw["predicted_ms"]),
            drafted=int(raw.get("draft_n", 0)),
            accepted=int(raw.get("draft_n_accepted", 0)),
        )
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def _refused(reason: str) -> ClusterctlError:
    return ClusterctlError(f"the head did not answer a measured request: {reason}", hint=REFUSED_HINT)
