"""The head's HTTP API, reached from the head's own side of the network through its transport."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from ipaddress import ip_address

import httpx

from clusterctl.errors import ClusterctlError, UsageError
from clusterctl.llama.serving import Health, Pulse, decode_rate, parse_metrics, parse_slots
from clusterctl.remote.transport import Transport
from clusterctl.remote.tunnel import tunnel
from clusterctl.reports import TrafficReport

LOOPBACK_OF_WILDCARD = {"0.0.0.0": "127.0.0.1", "::": "::1"}


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

    async def completes(self, timeout_s: float, slot: int | None = None) -> str | None:
        """Ask for one token, of this slot if given; return `None` if it came, else what came instead."""
        request = {"prompt": "Hello", "n_predict": 1, "temperature": 0, "cache_prompt": False}
        if slot is not None:
            request["id_slot"] = slot
        try:
            answer = await self.client.post("/completion", json=request, timeout=timeout_s)
        except httpx.TimeoutException:
            return f"no token within {timeout_s:g} s"
        except httpx.HTTPError as error:
            return f"the connection broke ({error or type(error).__name__})"
        if answer.status_code == 200 and "content" in answer.text:
            return None
        return f"HTTP {answer.status_code}: {answer.text[:200]}"

    async def pulse(self) -> Pulse:
        """Look at `/slots` and `/metrics`; nothing is computed for it.

        The averages of `/metrics` cover the time since somebody last asked for them.
        """
        now_s = asyncio.get_running_loop().time()
        try:
            slots = await self.client.get("/slots")
            metrics = await self.client.get("/metrics")
        except httpx.HTTPError:
            return Pulse(now_s, answered=False)
        return Pulse(now_s, True, parse_slots(_json(slots)), parse_metrics(metrics.text))

    async def traffic(self) -> TrafficReport:
        """What the head does now; unknown where it does not tell."""
        return traffic_of(await self.pulse())

    async def tokens(self, text: str) -> tuple[int, ...]:
        """Return the model's tokens of a text, with the token that begins every text where the model has one.

        Raises:
            ClusterctlError: if the head does not tell.
            httpx.HTTPError: if it does not answer.
        """
        answer = await self.client.post("/tokenize", json={"content": text, "add_special": True})
        document = _json(answer)
        tokens = document.get("tokens") if isinstance(document, dict) else None
        if not isinstance(tokens, list) or not all(isinstance(token, int) for token in tokens):
            raise ClusterctlError(f"/tokenize answers HTTP {answer.status_code}: {answer.text[:200]}")
        return tuple(tokens)

    async def candidates(
        self, prompt: Sequence[int], count: int, timeout_s: float, *, cached: bool
    ) -> dict[int, float | None]:
        """Return the most probable next tokens with their log-probabilities, `None` for one that is no number.

        One token a request, since drafted tokens come without probabilities (tools/server in llama.cpp). With
        `cached`, what the slot holds of the prompt already is not computed again.

        Raises:
            ClusterctlError: if the head does not tell.
            httpx.HTTPError: if it does not answer.
        """
        request = {"prompt": list(prompt), "n_predict": 1, "n_probs": count, "temperature": 0}
        answer = await self.client.post("/completion", json=request | {"cache_prompt": cached}, timeout=timeout_s)
        try:
            rows = answer.json()["completion_probabilities"][0]["top_logprobs"]
            return {int(row["id"]): None if row["logprob"] is None else float(row["logprob"]) for row in rows}
        except (ValueError, KeyError, IndexError, TypeError) as error:
            raise ClusterctlError(f"/completion answers HTTP {answer.status_code}: {answer.text[:200]}") from error


def traffic_of(now: Pulse, before: Pulse | None = None) -> TrafficReport:
    """What a head does: its speed between two looks, or its own averages where there is only one.

    An average of 0 says that nothing has been computed since somebody last asked, and no speed.
    """
    average = now.metrics.get("predicted_tokens_seconds") or None
    return TrafficReport(
        prompt_tok_s=now.metrics.get("prompt_tokens_seconds") or None,
        decode_tok_s=decode_rate(before, now) if before else average,
        slots_busy=None if now.slots is None else sum(slot.is_busy for slot in now.slots),
        slots_total=None if now.slots is None else len(now.slots),
    )


def _json(answer: httpx.Response) -> object:
    """The document of an answer, `None` if it is an error or no JSON."""
    try:
        return answer.json() if answer.status_code == 200 else None
    except ValueError:
        return None


def reachable_address(host: str) -> str:
    """Where the head's own machine reaches a server that listens on `host`."""
    return LOOPBACK_OF_WILDCARD.get(host, host)


def is_loopback(host: str) -> bool:
    """Whether a server that listens on `host` serves its own machine alone."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def host_and_port(host: str, port: int) -> str:
    """`host:port` as in a URL, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def base_url(host: str, port: int, *, has_tls: bool) -> str:
    """The URL of a head that listens on `host:port`."""
    return f"{'https' if has_tls else 'http'}://{host_and_port(host, port)}"


@asynccontextmanager
async def head_api(
    head: Transport, host: str, port: int, api_key: str | None = None, certificate: str | None = None
) -> AsyncIterator[HeadApi]:
    """Open the API of a head that listens on `host:port` of its machine; with a certificate, by HTTPS.

    Raises:
        UsageError: if the certificate is none.
        NodeUnreachable: if no connection can be had through the head's machine.
    """
    # As bytes, for llama-server compares bytes, and httpx takes no text but ASCII (tools/server in llama.cpp).
    headers = {b"Authorization": f"Bearer {api_key}".encode(errors="replace")} if api_key else {}
    # A context for HTTP would be made for nothing, and takes its time.
    trust: ssl.SSLContext | bool = _trust(head.node, certificate) if certificate else False
    async with (
        tunnel(head, reachable_address(host), port) as local_port,
        httpx.AsyncClient(
            base_url=base_url("127.0.0.1", local_port, has_tls=certificate is not None),
            headers=headers,
            timeout=5.0,
            trust_env=False,
            verify=trust,
        ) as client,
    ):
        yield HeadApi(client)


def _trust(node: str, certificate: str) -> ssl.SSLContext:
    """Trust the certificate read from the head itself, whoever signed it and whatever name it bears."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    own, end, _ = certificate.partition("-----END CERTIFICATE-----")
    try:
        context.load_verify_locations(cadata=own + end)
    except (ssl.SSLError, ValueError) as error:
        raise UsageError(
            f"server.tls.cert_file holds no certificate: {error}", node=node, hint="it must be in PEM format"
        ) from error
    return context
