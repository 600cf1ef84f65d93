"""The head's HTTP API, reached from the head's own side of the network through its transport."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import httpx

from clusterctl.remote.transport import Transport
from clusterctl.remote.tunnel import tunnel
from clusterctl.reports import TrafficReport

WILDCARD = "0.0.0.0"
# Prometheus text: averages since the last time somebody asked.
_METRIC = re.compile(r"^llamacpp:(\w+) ([0-9.]+(?:e[+-]?\d+)?)$", re.MULTILINE)


class Health(StrEnum):
    """What `/health` says: llama-server answers 503 while it loads and 200 once it is ready."""

    OK = "ok"
    LOADING = "loading"
    NO_ANSWER = "no answer"


@dataclass(frozen=True, slots=True)
class HeadApi:
    """A client of one head."""

    client: httpx.AsyncClient

    async def health(self) -> Health:
        """Ask `/health`. It stays ok after a worker has died, so it alone proves nothing."""
        try:
            answer = await self.client.get("/health")
        except httpx.HTTPError:
            return Health.NO_ANSWER
        return {200: Health.OK, 503: Health.LOADING}.get(answer.status_code, Health.NO_ANSWER)

    async def completes(self, timeout_s: float) -> str | None:
        """Ask for one token; return `None` if it came, else what came instead."""
        request = {"prompt": "Hello", "n_predict": 1, "temperature": 0, "cache_prompt": False}
        try:
            answer = await self.client.post("/completion", json=request, timeout=timeout_s)
        except httpx.TimeoutException:
            return f"no token within {timeout_s:g} s"
        except httpx.HTTPError as error:
            return f"the connection broke ({error or type(error).__name__})"
        if answer.status_code == 200 and "content" in answer.text:
            return None
        return f"HTTP {answer.status_code}: {answer.text[:200]}"

    async def traffic(self) -> TrafficReport:
        """What the head does now, from `/slots` and `/metrics`; unknown where it does not tell."""
        slots, metrics = await self._slots(), await self._metrics()
        return TrafficReport(
            prompt_tok_s=metrics.get("prompt_tokens_seconds"),
            decode_tok_s=metrics.get("predicted_tokens_seconds"),
            slots_busy=None if slots is None else sum(bool(slot.get("is_processing")) for slot in slots),
            slots_total=None if slots is None else len(slots),
        )

    async def _slots(self) -> list[dict[str, Any]] | None:
        try:
            answer = await self.client.get("/slots")
            found = answer.json() if answer.status_code == 200 else None
        except (httpx.HTTPError, ValueError):
            return None
        return found if isinstance(found, list) else None

    async def _metrics(self) -> dict[str, float]:
        try:
            answer = await self.client.get("/metrics")
        except httpx.HTTPError:
            return {}
        return {name: float(value) for name, value in _METRIC.findall(answer.text)}


@asynccontextmanager
async def head_api(head: Transport, host: str, port: int, api_key: str | None = None) -> AsyncIterator[HeadApi]:
    """Open the API of a head that listens on `host:port` of its machine."""
    address = "127.0.0.1" if host == WILDCARD else host
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    async with (
        tunnel(head, address, port) as local_port,
        httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{local_port}", headers=headers, timeout=5.0, trust_env=False
        ) as client,
    ):
        yield HeadApi(client)
