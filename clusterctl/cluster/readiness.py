"""Waiting until the cluster serves. Dead is not slow: a phase ends at once when one of its processes has died."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_delay, wait_exponential

from clusterctl.cluster.failure import explain, read_log_tail
from clusterctl.cluster.head_api import HeadApi, Health
from clusterctl.cluster.observation import observe
from clusterctl.cluster.steps import Tell
from clusterctl.errors import ClusterctlError, NotReady, StartFailed, raise_all
from clusterctl.llama.load_log import model_buffers
from clusterctl.model import MIB, Outcome, Split, Step
from clusterctl.remote import commands
from clusterctl.remote.fanout import on_all
from clusterctl.remote.transport import Transport

TITLE = "wait until it serves"
BASE_TIMEOUT_S = 120.0
# The slowest load published for such a cluster is 100 Mbit/s over one stream (llama.cpp issue 27653).
SLOWEST_LOAD_BYTES_S = 12_000_000
COMPLETION_TIMEOUT_S = 120.0


def load_timeout_s(model_bytes: int) -> float:
    """How long a load may take before it counts as failed, in seconds."""
    return BASE_TIMEOUT_S + model_bytes / SLOWEST_LOAD_BYTES_S


async def wait_until_serving(
    transports: Mapping[str, Transport],
    cluster: str,
    head: str,
    workers: Sequence[str],
    api: HeadApi,
    tell: Tell,
    timeout_s: float,
) -> None:
    """Return once `/health` is ok and a token has come back.

    Raises:
        StartFailed: as soon as a process has ended, with the likely cause.
        NotReady: after `timeout_s`, with the head's last log line.
    """
    policy = AsyncRetrying(
        retry=retry_if_exception_type(NotReady),
        wait=wait_exponential(multiplier=0.1, max=2),
        stop=stop_after_delay(timeout_s),
        reraise=True,
    )
    async for attempt in policy:
        with attempt:
            await demand_alive(transports, cluster, [head, *workers])
            await _demand_health(transports[head], cluster, api, tell, timeout_s)
    missing = await api.completes(COMPLETION_TIMEOUT_S)
    if missing is not None:
        await demand_alive(transports, cluster, [head, *workers])
        raise StartFailed(
            f"the head says it is healthy but completes nothing: {missing}",
            node=head,
            hint=f"`clusterctl logs {head}` shows why",
            log=(await read_log_tail(transports[head], cluster, head))[-12:],
        )


async def _demand_health(head: Transport, cluster: str, api: HeadApi, tell: Tell, timeout_s: float) -> None:
    health = await api.health()
    if health is Health.OK:
        return
    log = await read_log_tail(head, cluster, head.node)
    last = log[-1].strip() if log else "its log is empty"
    tell(Step(TITLE, Outcome.WAITING, detail=f"{health}: {last}"))
    raise NotReady(
        f"the head does not serve after {timeout_s:g} s; last log line: {last}",
        node=head.node,
        hint="give it longer with --timeout, or look at `clusterctl logs`; what was started has been undone",
    )


async def demand_alive(transports: Mapping[str, Transport], cluster: str, nodes: Sequence[str]) -> None:
    """Return if every node's program runs.

    Raises:
        StartFailed: for those that do not, each with its likely cause; workers first, as causes go.
    """

    async def look(name: str, transport: Transport) -> ClusterctlError | None:
        process = (await observe(transport, cluster)).process(name)
        if process is None:
            return StartFailed("its record has vanished", node=name, hint="run `clusterctl down`, then `up`")
        if process.runs:
            return None
        return await explain(transports, cluster, process, f"the {process.record.role} has died")

    outcomes = await on_all({name: transports[name] for name in reversed(nodes)}, look)
    raise_all([*outcomes.failed.values(), *(error for error in outcomes.done.values() if error)])


async def demand_buffers(head: Transport, cluster: str, split: Split) -> str:
    """Return the weights that each worker really holds, in words, read from the head's log.

    Raises:
        StartFailed: if a worker that was to hold weights holds none: it would serve without that worker.
    """
    output = await head.run(commands.log_from(cluster, head.node, 0))
    buffers = model_buffers(output.stdout.decode(errors="replace"))
    planned: dict[str, float] = {}
    for share in split.shares:
        endpoint = share.offer.rpc_endpoint
        if endpoint is None or share.memory.model_bytes == 0:
            continue
        planned[endpoint] = planned.get(endpoint, 0.0) + share.memory.model_bytes / MIB
        if not buffers.get(endpoint):
            raise StartFailed(
                f"the head's log shows no model buffer at {endpoint}: it loads without this worker",
                node=share.offer.node,
                hint="compare the builds with `clusterctl check`, and look at both logs",
            )
    return ", ".join(f"{at} holds {buffers[at]:.1f} MiB of {mib:.1f} planned" for at, mib in planned.items())
