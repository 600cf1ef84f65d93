"""The private network between head and workers, measured: reachable, round-trip time, throughput.

The worker serves a few MiB on its own RPC port, which is free then, and the head fetches them: exactly the way
that layers and tokens will go, firewalls included. Perl does it, since a node has no clusterctl.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from clusterctl.errors import ClusterctlError
from clusterctl.model import Problem, Severity
from clusterctl.remote import commands
from clusterctl.remote.fanout import on_all
from clusterctl.remote.transport import Transport

SAMPLE_BYTES = 4 * 1024 * 1024
SAMPLE_S = 2
NO_PERL = 3
SLOW_MBIT_S = 500
SLOW_ROUND_TRIP_MS = 2.0


@dataclass(frozen=True, slots=True)
class Link:
    """The way from the head to a worker. `fault` says why it could not be measured; then the figures are unknown.

    `is_reachable` is `None` where nothing was learnt.
    """

    is_reachable: bool | None
    round_trip_ms: float | None = None
    mbit_s: float | None = None
    fault: str = ""


UNMEASURED = Link(None)


async def measure_links(
    head: Transport, workers: Mapping[str, Transport], endpoints: Mapping[str, tuple[str, int]]
) -> Mapping[str, Link]:
    """Measure the way to every endpoint, by node; nothing may listen there yet.

    The head takes the samples one after the other, for together they would share its link.
    """
    if not endpoints:
        return {}
    patience_s = SAMPLE_S * (len(endpoints) + 1)

    async def serve(node: str, endpoint: tuple[str, int]) -> str:
        command = commands.link_serve(*endpoint, size_bytes=SAMPLE_BYTES, timeout_s=patience_s)
        output = await workers[node].run(command, timeout_s=patience_s + 10)
        return "" if output.exit_status == 0 else output.stderr.strip() or f"exit status {output.exit_status}"

    serving = asyncio.ensure_future(on_all(endpoints, serve))
    try:
        output = await head.run(commands.link_measure(endpoints, timeout_s=SAMPLE_S), timeout_s=patience_s + 10)
    except ClusterctlError as error:
        return {node: Link(None, fault=error.message) for node in endpoints}
    finally:
        serving.cancel()
        await asyncio.wait([serving])
    if output.exit_status == NO_PERL:
        return {node: Link(None, fault="the head has no perl to measure with") for node in endpoints}
    return parse_links(output.stdout.decode(errors="replace"))


def parse_links(text: str) -> dict[str, Link]:
    """Read the lines of `link_measure.sh`. A refused connection shows that the way is open, and no more."""
    links = {}
    for line in text.splitlines():
        node, _, rest = line.partition(" ")
        first, _, second = rest.partition(" ")
        try:
            links[node] = Link(True, float(first), float(second))
        except ValueError:
            is_refused = "refused" in second.lower()
            links[node] = Link(is_refused, fault=second.strip())
    return links


def link_problems(link: Link, endpoint: str) -> Iterator[Problem]:
    """What is wrong with a link, with the numbers."""
    if link.is_reachable is False:
        yield Problem(
            "head-cannot-reach",
            Severity.ERROR,
            f"the head can't reach {endpoint}: {link.fault}",
            "check cable, route and firewall of the private network between head and worker",
        )
    elif link.mbit_s is None or link.round_trip_ms is None:
        yield Problem("link-not-measured", Severity.NOTE, f"the link to {endpoint} was not measured: {link.fault}")
    else:
        if link.mbit_s < SLOW_MBIT_S:
            yield Problem(
                "slow-link",
                Severity.WARNING,
                f"{link.mbit_s:.0f} Mbit/s from the head; {load_time(link.mbit_s)}",
                "use a wired link; `rpc.cache: true` sends the weights only once",
            )
        if link.round_trip_ms > SLOW_ROUND_TRIP_MS:
            yield Problem(
                "far-away",
                Severity.WARNING,
                f"{link.round_trip_ms:.1f} ms from the head; every token waits for it",
                "use a wired link, and no tunnel where none is needed",
            )


def load_time(mbit_s: float) -> str:
    """Say what a rate means for the weights, which have to cross the link once."""
    return f"10 GB take {80_000 / mbit_s / 60:.0f} min to load"
