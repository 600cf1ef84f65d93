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

from clusterctl.cluster.failure import read_log_tail
from clusterctl.cluster.head_api import HeadApi
from clusterctl.cluster.observation import Observation, observe
from clusterctl.cluster.patience import Limits, Patience
from clusterctl.cluster.prober import Prober
from clusterctl.cluster.progress import Verdict
from clusterctl.cluster.sight import Sight
from clusterctl.cluster.steps import Tell
from clusterctl.errors import ClusterctlError, CommandTimeout, NotReady, StartFailed, raise_all
from clusterctl.llama.load_log import model_buffers
from clusterctl.llama.serving import Health
from clusterctl.model import MIB, Outcome, Split, Step
from clusterctl.remote import commands
from clusterctl.remote.fanout import Outcomes, on_all
from clusterctl.remote.transport import Transport

TITLE = "wait until it serves"
COMPLETION_TIMEOUT_S = 120.0
GLANCE_S = 0.1
PROGRESS_INTERVAL_S = 1.0


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
    """Return once `/health` is ok and tokens come.

    Raises:
        StartFailed: as soon as a process has ended, or if no token comes.
        NotReady: when nothing has moved for too long, with the head's last log line.
    """
    nodes = [head, *workers]
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
            seen, health = await asyncio.gather(_look_patiently(transports, cluster, nodes), api.health())
            if health is Health.OK:
                break
            log = await read_log_tail(transports[head], cluster, head)
            line = log[-1].strip() if log else patience.line or "its log is empty"
            patience = patience.seeing(clock(), _moved_bytes(seen, nodes), line)
            if refusal := patience.refusal(clock()):
                raise _not_ready(head, refusal)
            tell(Step(TITLE, Outcome.WAITING, detail=f"{health}: {line}"))
            raise _Loading(line)
    await _demand_token(transports, cluster, nodes, api, tell)


async def _demand_token(
    transports: Mapping[str, Transport], cluster: str, nodes: Sequence[str], api: HeadApi, tell: Tell
) -> None:
    """Health stays ok when the cluster can compute nothing."""
    if (await api.pulse()).is_idle is False:
        missing = await _missing_progress(transports, cluster, nodes, api, tell)
    else:
        missing = await api.completes(COMPLETION_TIMEOUT_S)
    if missing is not None:
        await demand_alive(transports, cluster, nodes)
        raise StartFailed(f"the head says it is healthy but completes nothing: {missing}", node=nodes[0])


async def _missing_progress(
    transports: Mapping[str, Transport], cluster: str, nodes: Sequence[str], api: HeadApi, tell: Tell
) -> str | None:
    """Wait until a head that is at work has got on with it, and return `None`; else what came instead.

    A token of ours would have to wait for its turn, for as long as an answer takes.
    """
    prober = Prober(COMPLETION_TIMEOUT_S)
    while True:
        seen = await _look_patiently(transports, cluster, nodes)
        progress = (await prober.probe(api, Sight(nodes[0], seen).motion, may_ask=True)).progress
        if progress.verdict == Verdict.PROVEN:
            return None
        if progress.verdict == Verdict.STUCK:
            return progress.detail
        tell(Step(TITLE, Outcome.WAITING, detail=progress.detail))
        await asyncio.sleep(PROGRESS_INTERVAL_S)


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
        hint="--timeout and --stall-timeout say how long to wait; with --no-wait it loads on by itself",
    )


async def demand_alive(transports: Mapping[str, Transport], cluster: str, nodes: Sequence[str]) -> None:
    """Return if the programs of all nodes run; the first node is the head.

    Raises:
        StartFailed: for those that do not; workers first, as causes go.
        NodeUnreachable: for those that can't be looked at.
    """
    (await _look(transports, cluster, nodes)).all_done()


async def _look_patiently(
    transports: Mapping[str, Transport], cluster: str, nodes: Sequence[str]
) -> Mapping[str, Observation]:
    """Return what is seen of nodes whose programs run; one that is busy with loading may be too slow to answer.

    Raises:
        StartFailed: if a program does not run.
        NodeUnreachable: if a node is gone.
    """
    looked = await _look(transports, cluster, nodes)
    raise_all([error for error in looked.failed.values() if not isinstance(error, CommandTimeout)])
    return looked.done


async def _look(transports: Mapping[str, Transport], cluster: str, nodes: Sequence[str]) -> Outcomes[Observation]:
    async def look(name: str, transport: Transport) -> Observation:
        seen = await observe(transport, cluster, activity=True)
        process = seen.process(name)
        if process is None:
            raise StartFailed("its record has vanished", node=name, hint="run `clusterctl down`, then `up`")
        if not process.runs:
            raise StartFailed(f"the {process.record.role} has died", node=name)
        return seen

    return await on_all({name: transports[name] for name in reversed(nodes)}, look)


def _moved_bytes(seen: Mapping[str, Observation], nodes: Sequence[str]) -> int | None:
    """How many bytes the programs have moved so far; `None` if a node was not seen, or the head's are unknown.

    The first node is the head; those of the workers pass it as well.
    """
    if any(name not in seen for name in nodes) or nodes[0] not in seen[nodes[0]].moved_bytes:
        return None
    return sum(seen[name].moved_bytes.get(name, 0) for name in nodes)


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
                hint="compare the builds with `clusterctl check`",
            )
    return ", ".join(f"{at} holds {buffers[at]:.1f} MiB of {mib:.1f} planned" for at, mib in planned.items())
