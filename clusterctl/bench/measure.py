"""Measuring a head: warm-up, then rounds of as many clients at the same time as asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from clusterctl.bench.figures import Round, load_of
from clusterctl.bench.prompt import prompt_text, prompt_tokens
from clusterctl.bench.stream import OWN_CONNECTION, Answer, stream_answer
from clusterctl.cluster.steps import Note, Tell, telling
from clusterctl.errors import ClusterctlError, UsageError
from clusterctl.measurements import Load, Settings
from clusterctl.model import Outcome, Step

# The head's clock and ours must agree that far, or something lies between them.
TOLERATED_DIFFERENCE = 0.03


@dataclass(frozen=True, slots=True)
class Serving:
    """What the head says of itself: its slots, and the tokens of context that one of them has."""

    slots: int
    context_per_slot: int


async def read_serving(client: httpx.AsyncClient) -> Serving:
    """Ask the head's `/props`.

    Raises:
        ClusterctlError: if it does not tell.
    """
    properties = await _ask(client, "GET", "/props")
    try:
        context = properties["default_generation_settings"]["n_ctx"]
        return Serving(int(properties["total_slots"]), int(context))
    except (KeyError, TypeError, ValueError) as error:
        raise ClusterctlError(
            f"the head's /props lacks what is needed: {error}", hint="is it really llama-server?"
        ) from error


def demand_room(serving: Serving, settings: Settings) -> None:
    """Return if a request fits into a slot.

    Raises:
        UsageError: if it does not, with what would.
    """
    needed = settings.prompt_tokens + settings.decode_tokens
    if needed > serving.context_per_slot:
        raise UsageError(
            f"{settings.prompt_tokens} prompt and {settings.decode_tokens} decoded tokens exceed "
            f"the {serving.context_per_slot} tokens of context that a slot has",
            hint="lower --prompt-tokens or --decode-tokens, or give the recipe more context",
        )


async def measure(
    client: httpx.AsyncClient, settings: Settings, concurrency: Sequence[int], tell: Tell
) -> tuple[tuple[Load, ...], tuple[str, ...]]:
    """Return a load for each number of clients, and what was odd about the answers.

    Raises:
        ClusterctlError: if the head refuses a request.
        httpx.HTTPError: if the connection to the head breaks.
    """
    text = await _tokenize(client)
    loads: list[Load] = []
    oddities: list[str] = []
    sent = 0
    for clients in concurrency:
        rounds: list[Round] = []
        with telling(tell, f"measure with {_clients(clients)}") as note:
            for number in range(settings.warmup + settings.repetitions):
                tell(_progress(clients, number, settings))
                prompts = [prompt_tokens(text, sent + n, settings.prompt_tokens) for n in range(clients)]
                sent += clients
                rounds.append(await _round(client, prompts, settings.decode_tokens))
            counted = rounds[settings.warmup :]
            loads.append(load_of(clients, counted))
            oddities += oddities_of(counted, loads[-1], settings)
            _sum_up(note, loads[-1])
    return tuple(loads), tuple(dict.fromkeys(oddities))


def oddities_of(rounds: Sequence[Round], load: Load, settings: Settings) -> Iterator[str]:
    """What makes the figures of a load doubtful, in words."""
    answers = [answer for each in rounds for answer in each.answers]
    if cached := max(answer.timings.cached for answer in answers):
        yield f"the head reused {cached} tokens of a prompt: prefill and first token look better than they are"
    if (fewest := min(answer.timings.predicted for answer in answers)) < settings.decode_tokens:
        yield f"the head decoded {fewest} of {settings.decode_tokens} tokens: something of its own limits it"
    difference = load.head_difference
    if difference is not None and abs(difference) > TOLERATED_DIFFERENCE:
        more_or_less = "above" if difference > 0 else "below"
        yield (
            f"with {_clients(load.concurrency)}, decode is {abs(difference):.0%} {more_or_less} what the head "
            "itself says: this machine, or the way to the head, is too busy to measure by"
        )


async def _round(client: httpx.AsyncClient, prompts: Sequence[Sequence[int]], decode_tokens: int) -> Round:
    """Ask for all answers at once. All are awaited even if one fails, so that none goes on unseen."""
    asked = (stream_answer(client, prompt, decode_tokens) for prompt in prompts)
    answers: list[Answer] = []
    for outcome in await asyncio.gather(*asked, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome
        answers.append(outcome)
    return Round(tuple(answers))


async def _tokenize(client: httpx.AsyncClient) -> list[int]:
    answer = await _ask(client, "POST", "/tokenize", {"content": prompt_text()})
    tokens = answer.get("tokens")
    if not isinstance(tokens, list) or not tokens or not all(isinstance(token, int) for token in tokens):
        raise ClusterctlError("the head's /tokenize gave no tokens", hint="is it really llama-server?")
    return tokens


async def _ask(client: httpx.AsyncClient, method: str, path: str, body: object = None) -> dict[str, Any]:
    response = await client.request(method, path, json=body, headers=OWN_CONNECTION, timeout=30.0)
    if response.status_code == 401:
        raise ClusterctlError("the head wants an API key, and its key file gave none", hint="see api_key_file")
    try:
        answer = response.json() if response.status_code == 200 else None
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise ClusterctlError(
            f"the head's {path} answers HTTP {response.status_code}: {response.text[:200]}",
            hint="its extra_args may have switched that off",
        )
    return answer


def _progress(clients: int, number: int, settings: Settings) -> Step:
    warming = number < settings.warmup
    detail = "warm-up" if warming else f"repetition {number - settings.warmup + 1} of {settings.repetitions}"
    return Step(f"measure with {_clients(clients)}", Outcome.WAITING, detail=detail)


def _sum_up(note: Note, load: Load) -> None:
    parts = ((name, load.figures.get(name)) for name in ("prefill_tok_s", "decode_tok_s"))
    note.detail = ", ".join(f"{name.partition('_')[0]} {s.median:.3g} tok/s" for name, s in parts if s)


def _clients(number: int) -> str:
    return "1 client" if number == 1 else f"{number} clients"
