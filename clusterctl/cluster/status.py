"""`status`: what really runs, told by processes, sockets and the head's own API.

Nobody connects to a worker here: it serves one client, and a second would wait for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Never

from clusterctl.cluster.lookout import Lookout, looking_out
from clusterctl.cluster.membership import Member
from clusterctl.cluster.node_memory import NodeMemory
from clusterctl.cluster.progress import DEADLINE_S, Verdict
from clusterctl.cluster.running_head import access_of, url_of
from clusterctl.cluster.sight import Found, Sight
from clusterctl.cluster.status_problems import problems_of
from clusterctl.config.inventory import Inventory
from clusterctl.llama.serving import Health
from clusterctl.model import Device, Problem, Severity
from clusterctl.reports import HeadStatus, OrphanReport, StatusReport, WorkerStatus

PAUSE_S = 1.0
WATCH_INTERVAL_S = 2.0
TOKEN_EVERY_S = 600.0


async def read_status(
    inventory: Inventory, *, deadline_s: float = DEADLINE_S, asks_token: bool = True
) -> StatusReport:
    """Look at every node and judge the cluster's state; nothing that serves is disturbed.

    While a token is due, it is looked at again, at most for `deadline_s`. An idle head is asked for one token,
    unless `asks_token` is off; then whether it makes progress stays unknown.
    """
    async with looking_out(inventory, deadline_s=deadline_s, token_every_s=0.0 if asks_token else None) as lookout:
        while True:
            report = await look(lookout)
            if report.progress.verdict != Verdict.WAITING:
                return report
            await asyncio.sleep(PAUSE_S)


async def watch_status(
    inventory: Inventory,
    show: Callable[[StatusReport], None],
    *,
    interval_s: float = WATCH_INTERVAL_S,
    deadline_s: float = DEADLINE_S,
    asks_token: bool = True,
) -> Never:
    """Look again and again over the same connections, and show every report; end only by being cancelled.

    An idle head is asked for a token at first, and then only after ten minutes without any.
    """
    token_every_s = TOKEN_EVERY_S if asks_token else None
    async with looking_out(inventory, deadline_s=deadline_s, token_every_s=token_every_s) as lookout:
        while True:
            show(await look(lookout))
            await asyncio.sleep(interval_s)


async def look(lookout: Lookout) -> StatusReport:
    """Look once, and report."""
    return report_of(await lookout.look())


def report_of(sight: Sight) -> StatusReport:
    """Judge what was seen. Pure."""
    head = _head_status(sight)
    workers = tuple(_worker_status(sight, member) for member in sight.workers)
    problems = tuple(problems_of(sight, head, workers))
    orphans = tuple(_orphan(name, found) for name, found in sight.orphans.items())
    state = _state(sight, head, workers, problems)
    desired = None if sight.membership is None else "up" if sight.membership.is_wanted else "down"
    return StatusReport(state, head, workers, sight.traffic, problems, sight.progress, orphans, desired)


def _head_status(sight: Sight) -> HeadStatus:
    name, process, membership = sight.head, sight.head_process, sight.membership
    url = membership.url if membership else None
    if process is None:
        return HeadStatus(name, url=url, health="stopped" if name in sight.seen else "unreachable")
    url = url or url_of(process.record)
    if not process.runs:
        return HeadStatus(name, url=url, health="stopped")
    node = sight.programs[name].node
    return HeadStatus(
        node=name,
        pid=process.pid,
        since=process.record.started_at,
        url=url,
        health=sight.health or Health.NO_ANSWER,
        resident_mib=_resident_mib(sight, name),
        device_mib=_device_mib(sight.memory.get(node), process.pid),
        device_memory=_cards(sight.memory.get(node)),
        access=access_of(process.record, is_remote=sight.head_is_remote),
    )


def _worker_status(sight: Sight, member: Member) -> WorkerStatus:
    endpoint = f"{member.address}:{member.port}"
    found = sight.programs.get(member.name)
    observation = sight.seen.get(found.node if found else member.name)
    was_elsewhere = any(place.startswith(f"{member.name}@") for place in sight.unreachable)
    if observation is None or (found is None and was_elsewhere):
        return WorkerStatus(member.name, endpoint, state="unreachable")
    if found is None or not found.process.runs:
        return WorkerStatus(member.name, endpoint, state="stopped")
    node, pid, attached = found.node, found.process.pid, sight.peers_of(member)
    return WorkerStatus(
        node=member.name,
        endpoint=endpoint,
        pid=pid,
        state="suspended" if member.name in sight.suspended else _worker_state(sight, endpoint, attached),
        listening_on=tuple(f"{s.address}:{s.port}" for s in observation.listening(member.port)),
        rpc_protocol=member.rpc_protocol,
        attached=attached,
        resident_mib=_resident_mib(sight, member.name),
        device_mib=_device_mib(sight.memory.get(node), pid),
        device_memory=_cards(sight.memory.get(node)),
    )


def _worker_state(sight: Sight, endpoint: str, attached: Sequence[str]) -> str:
    """Serving only if the head's own machine has a connection to it: whoever else is attached is a stranger."""
    if not attached:
        return "idle"
    head = sight.seen.get(sight.head)
    if head is None or head.sockets is None:
        return "serving"
    is_ours = any(socket.peer == endpoint for socket in head.sockets)
    return "serving" if is_ours or sight.health is not Health.OK else "foreign"


def _orphan(name: str, found: Found) -> OrphanReport:
    record = found.process.record
    return OrphanReport(found.node, name, record.role, found.process.pid, record.started_at, record.owner)


def _resident_mib(sight: Sight, name: str) -> float | None:
    vitals = sight.vitals_of(name)
    return vitals.resident_mib if vitals else None


def _device_mib(memory: NodeMemory | None, pid: int | None) -> float | None:
    return None if memory is None or pid is None else memory.held_by(pid)


def _cards(memory: NodeMemory | None) -> tuple[Device, ...]:
    cards = memory.cards if memory else ()
    return tuple(Device(card.name, "", card.total_mib, card.free_mib) for card in cards)


def _state(sight: Sight, head: HeadStatus, workers: Sequence[WorkerStatus], problems: Sequence[Problem]) -> str:
    runs = head.pid is not None or any(worker.pid for worker in workers) or bool(sight.orphans)
    errors = [problem for problem in problems if problem.severity is Severity.ERROR]
    if head.health == "unreachable" or (sight.unreachable and not runs):
        return "unknown"
    if not runs:
        return "down"
    if head.health == Health.LOADING and not errors:
        return "loading"
    if _is_wedged(sight, head, workers):
        return "wedged"
    return "up" if not errors and head.health == Health.OK else "degraded"


def _is_wedged(sight: Sight, head: HeadStatus, workers: Sequence[WorkerStatus]) -> bool:
    """All of it lives, and still nothing comes; with a part missing it is degraded."""
    if head.pid is None or any(worker.pid is None for worker in workers):
        return False
    return bool(sight.suspended) or (head.health == Health.OK and sight.progress.verdict == Verdict.STUCK)
