"""Waiting until the cluster serves. Dead is not slow: a phase ends at once when one of its processes has died."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial

from tenacity import (
    AsyncRetrying,
    retry_if_exception_type,
    retry_if_result,
    stop_after_delay,
    wait_exponential,
    wait_fixed,
)

from clusterctl.cluster.failure import explain, read_log_tail
from clusterctl.cluster.head_api import HeadApi
from clusterctl.cluster.observation import observe
from clusterctl.cluster.patience import Limits, Patience
from clusterctl.cluster.steps import Tell
from clusterctl.errors import ClusterctlError, NotReady, StartFailed
from clusterctl.llama.load_log import model_buffers
from clusterctl.llama.serving import Health
from clusterctl.model import MIB, Outcome, Split, Step
from clusterctl.remote import commands
from clusterctl.remote.fanout import on_all
from clusterctl.remote.transport import Transport

TITLE = "wait until it serves"
COMPLETION_TIMEOUT_S = 120.0
GLANCE_S = 0.1


class _Loading(ClusterctlError):
    """All is well, but it is not done yet."""


async def wait_until_serving(
    transports: Mapping[str, Transport],
    cluster: str,
    head: str,
    workers: Sequence[str],
    api: HeadApi,
    tell: Tell,
    limits: Limits,
) -> None:
    """Return once `/health` is ok and a token has come back.

    Raises:
        StartFailed: as soon as a process has ended, with the likely cause.
        NotReady: when nothing has moved for too long, with the head's last log line.
    """
    clock = asyncio.get_running_loop().time
    began_s = clock()
    patience = Patience(limits, began_s, began_s)
    policy = AsyncRetrying(
        retry=retry_if_exception_type(_Loading),
        wait=wait_exponential(multiplier=0.25, max=2),
        sleep=partial(_rest, api),
        reraise=True,
    )
    async for attempt in policy:
        with attempt:
            alive = demand_alive(transports, cluster, [head, *workers])
            moved_bytes, health = await asyncio.gather(alive, api.health())
            if health is Health.OK:
                break
            log = await read_log_tail(transports[head], cluster, head)
            line = log[-1].strip() if log else "its log is empty"
            patience = patience.seeing(clock(), moved_bytes, line)
            if refusal := patience.refusal(clock()):
                raise _not_ready(head, refusal)
            tell(Step(TITLE, Outcome.WAITING, detail=f"{health}: {line}"))
            raise _Loading(line)
    await _demand_token(transports, cluster, head, workers, api)


async def _demand_token(
    transports: Mapping[str, Transport], cluster: str, head: str, workers: Sequence[str], api: HeadApi
) -> None:
    """Health stays ok when the cluster can compute nothing."""
    missing = await api.completes(COMPLETION_TIMEOUT_S)
    if missing is not None:
        await demand_alive(transports, cluster, [head, *workers])
        raise StartFailed(
            f"the head says it is healthy but completes nothing: {missing}",
            node=head,
            hint=f"`clusterctl logs {head}` shows why",
            log=(await read_log_tail(transports[head], cluster, head))[-12:],
        )


async def _rest(api: HeadApi, seconds: float) -> None:
    """Rest for so long, or until the head is ready: asking it costs little, looking at every node does not."""
    glances = AsyncRetrying(
        retry=retry_if_result(lambda health: health is not Health.OK),
        wait=wait_fixed(GLANCE_S),
        stop=stop_after_delay(seconds),
        retry_error_callback=lambda _: None,
    )
    await glances(api.health)


def _not_ready(head: str, refusal: str) -> NotReady:
    return NotReady(
        refusal,
        node=head,
        hint="what was started has been undone; `up --no-wait` lets it load on, for `clusterctl logs` to show; "
        "--timeout and --stall-timeout say how long to wait",
    )


async def demand_alive(transports: Mapping[str, Transport], cluster: str, nodes: Sequence[str]) -> int | None:
    """If the programs of all nodes run, return how many bytes they have moved so far.

    The first node is the head; `None` if its bytes can't be told, for those of the workers pass it as well.

    Raises:
        StartFailed: for those that do not, each with its likely cause; workers first, as causes go.
    """

    async def look(name: str, transport: Transport) -> int | None:
        seen = await observe(transport, cluster, activity=True)
        process = seen.process(name)
        if process is None:
            raise StartFailed("its record has vanished", node=name, hint="run `clusterctl down`, then `up`")
        if not process.runs:
            raise await explain(transports, cluster, process, f"the {process.record.role} has died")
        return seen.moved_bytes.get(name)

    moved_bytes = (await on_all({name: transports[name] for name in reversed(nodes)}, look)).all_done()
    return None if moved_bytes[nodes[0]] is None else sum(filter(None, moved_bytes.values()))


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
