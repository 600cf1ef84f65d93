"""The private network between head and workers, measured: reachable, round-trip time, throughput.

The worker serves a few MiB on its own RPC port, which is free then, and the head fetches them: exactly the way
that layers and tokens will go, firewalls included. Perl does it, since a node has no clusterctl.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from clusterctl.cluster.link_service import START_S, serving
from clusterctl.errors import ClusterctlError
from clusterctl.model import Problem, Severity
from clusterctl.remote import commands
from clusterctl.remote.command import Output
from clusterctl.remote.transport import Transport

SAMPLE_S = 2
NO_PERL = 3
SLOW_MBIT_S = 500
SLOW_ROUND_TRIP_MS = 2.0
_SAMPLE = re.compile(r"(\S+) ([0-9]{1,9}\.[0-9]{3}) ([0-9]{1,9}\.[0-9]{3})")
_FAILURE = re.compile(r"(\S+) - (.+)")
_ANSWER = re.compile("refused|connected", re.IGNORECASE)


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
    """Measure the way to every endpoint, by node; nothing may listen there yet, and nothing does afterwards.

    The head takes the samples one after the other, for together they would share its link.
    """
    if not endpoints:
        return {}
    patience_s = START_S + SAMPLE_S * (len(endpoints) + 1)
    async with serving(workers, endpoints, patience_s) as silent:
        try:
            command = commands.link_measure(endpoints, timeout_s=SAMPLE_S)
            output = await head.run(command, timeout_s=patience_s + 10)
        except ClusterctlError as error:
            return {node: Link(None, fault=error.message) for node in endpoints}
        return links_of(output, endpoints, silent)


def links_of(output: Output, nodes: Iterable[str], silent: Mapping[str, str]) -> dict[str, Link]:
    """Read what `link_measure.sh` says of each node; `silent` are the workers that did not listen, and why.

    Where a worker did not listen, an answer of the address tells nothing; where it did, a refusal is a firewall's.
    """
    lines = output.stdout.decode(errors="replace").splitlines()
    samples = {m[1]: Link(True, float(m[2]), float(m[3])) for m in map(_SAMPLE.fullmatch, lines) if m}
    failures = {m[1]: m[2] for m in map(_FAILURE.fullmatch, lines) if m}

    def link(node: str) -> Link:
        failure = failures.get(node, "")
        answer = _ANSWER.search(failure)
        if failure and not (answer and node in silent):
            return Link(False, fault=f"{failure}, although the worker listened" if answer else failure)
        if node in silent or node not in samples or not samples[node].mbit_s:
            return Link(None, fault=silent.get(node) or _complaint(output))
        return samples[node]

    return {node: link(node) for node in nodes}


def _complaint(output: Output) -> str:
    """Why the head measured nothing."""
    if output.exit_status == NO_PERL:
        return "the head has no perl to measure with"
    said = output.stderr.strip().partition("\n")[0][:200]
    return f"the head's perl failed: {said or f'exit status {output.exit_status}'}"


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
        yield Problem(
            "link-not-measured", Severity.WARNING, f"the link to {endpoint} was not measured: {link.fault}"
        )
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
