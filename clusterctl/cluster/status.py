"""`status`: what really runs, told by processes, sockets and the head's own API.

Nobody connects to a worker here: it serves one client, and a second would wait for ever.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import urlsplit

from clusterctl.cluster.head_api import Health, head_api
from clusterctl.cluster.membership import Member, Membership, parse_membership
from clusterctl.cluster.observation import Observation, observe
from clusterctl.cluster.record import Process
from clusterctl.cluster.session import Session, session
from clusterctl.config.inventory import Inventory
from clusterctl.model import Problem, Role, Severity
from clusterctl.remote.fanout import on_all
from clusterctl.reports import HeadStatus, StatusReport, TrafficReport, WorkerStatus


async def read_status(inventory: Inventory) -> StatusReport:
    """Look at every node and judge the cluster's state; nothing is disturbed."""
    async with session(inventory) as opened:
        looked = await on_all(opened.nodes, lambda _, node: observe(node, inventory.cluster))
        opened.unreachable.update(looked.failed)
        seen = looked.done
        head_seen = seen.get(inventory.head.name)
        membership = parse_membership(head_seen.membership) if head_seen else None
        health, traffic = await _ask_head(opened, inventory, head_seen, membership)
    head = _head_status(inventory, head_seen, membership, health)
    workers = tuple(_worker_status(inventory, member, seen) for member in _workers(inventory, seen, membership))
    problems = (*_unreachable(opened), *_judge(inventory, head, workers, head_seen))
    state = _state(head, workers, bool(opened.unreachable), problems)
    return StatusReport(state, head, workers, traffic, problems)


async def _ask_head(
    opened: Session, inventory: Inventory, seen: Observation | None, membership: Membership | None
) -> tuple[Health | None, TrafficReport]:
    process = seen.process(inventory.head.name) if seen else None
    if process is None or not process.runs:
        return None, TrafficReport()
    record = process.record
    async with head_api(opened.nodes[inventory.head.name], record.address, record.port) as api:
        return await api.health(), await api.traffic()


def _head_status(
    inventory: Inventory, seen: Observation | None, membership: Membership | None, health: Health | None
) -> HeadStatus:
    name = inventory.head.name
    process = seen.process(name) if seen else None
    if process is None:
        return HeadStatus(name, health="unreachable" if seen is None else "stopped")
    url = membership.url if membership else f"http://{process.record.address}:{process.record.port}"
    if not process.runs:
        return HeadStatus(name, url=url, health="stopped")
    return HeadStatus(name, process.pid, process.record.started_at, url, health or Health.NO_ANSWER)


def _workers(
    inventory: Inventory, seen: Mapping[str, Observation], membership: Membership | None
) -> Sequence[Member]:
    """The workers of the running cluster; without one, those that have something on record."""
    if membership is not None:
        return [member for member in membership.members if member.role is Role.WORKER]
    return [
        Member(name, Role.WORKER, None, process.record.address, process.record.port)
        for name, process in _processes(seen).items()
        if process.record.role is Role.WORKER
    ]


def _processes(seen: Mapping[str, Observation]) -> dict[str, Process]:
    found = {name: p for observation in seen.values() for name, p in observation.processes.items()}
    own = {name: p for name, observation in seen.items() if (p := observation.process(name))}
    return found | own


def _worker_status(inventory: Inventory, member: Member, seen: Mapping[str, Observation]) -> WorkerStatus:
    endpoint = f"{member.address}:{member.port}"
    observation = seen.get(member.name)
    process = _processes(seen).get(member.name)
    if observation is None:
        return WorkerStatus(member.name, endpoint, state="unreachable")
    if process is None or not process.runs:
        return WorkerStatus(member.name, endpoint, state="stopped")
    attached = [s for s in observation.attached(member.port) if s.address == member.address]
    return WorkerStatus(
        node=member.name,
        endpoint=endpoint,
        pid=process.pid,
        state="serving" if attached else "idle",
        listening_on=tuple(f"{s.address}:{s.port}" for s in observation.listening(member.port)),
    )


def _unreachable(opened: Session) -> Iterator[Problem]:
    for name, error in opened.unreachable.items():
        yield Problem("unreachable", Severity.ERROR, f"{name}: {error.message}", error.hint or "")


def _judge(
    inventory: Inventory,
    head: HeadStatus,
    workers: Sequence[WorkerStatus],
    seen: Observation | None,
) -> Iterator[Problem]:
    anything = head.pid is not None or any(worker.pid for worker in workers)
    if head.pid is None and anything:
        yield Problem(
            "head-stopped",
            Severity.ERROR,
            f"{head.node}: the head does not run, but workers do",
            "`clusterctl up` clears them and starts anew; `clusterctl down` ends them",
        )
    for worker in workers:
        if worker.state == "stopped" and anything:
            yield Problem(
                "worker-stopped",
                Severity.ERROR,
                f"{worker.node}: the worker is gone; the next request ends the head",
                f"`clusterctl logs {worker.node}` may tell why; `clusterctl up --replace` starts anew",
            )
        elif worker.state == "idle" and head.health == Health.OK:
            yield Problem(
                "worker-idle",
                Severity.ERROR,
                f"{worker.node}: the worker runs, but the head is not attached to it",
                "the head serves without it; `clusterctl up --replace` starts anew",
            )
        if worker.pid and set(worker.listening_on) != {worker.endpoint}:
            yield Problem(
                "listening-elsewhere",
                Severity.ERROR,
                f"{worker.node}: listens on {', '.join(worker.listening_on) or 'nothing'} "
                f"instead of {worker.endpoint}",
                "RPC has no password; `clusterctl down`, then look at the worker's log",
            )
    if head.pid is not None and head.health == Health.NO_ANSWER:
        yield Problem(
            "head-silent",
            Severity.ERROR,
            f"{head.node}: the head lives but does not answer on {urlsplit(head.url or '').netloc}",
            f"`clusterctl logs {head.node}` shows what it does",
        )


def _state(head: HeadStatus, workers: Sequence[WorkerStatus], is_unsure: bool, problems: Sequence[Problem]) -> str:
    runs = head.pid is not None or any(worker.pid for worker in workers)
    if head.health == "unreachable" or (is_unsure and not runs):
        return "unknown"
    if not runs:
        return "down"
    if head.health == Health.LOADING and not problems:
        return "loading"
    return "up" if not problems and head.health == Health.OK else "degraded"
