"""What is wrong with a cluster, told from one look at it. Pure.

An error makes the cluster degraded; a warning says what is not known, and is no reason to act.
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from clusterctl.cluster.progress import Verdict
from clusterctl.cluster.record import Process
from clusterctl.cluster.running_head import argument_of
from clusterctl.cluster.sight import Sight
from clusterctl.llama.serving import Health
from clusterctl.model import Problem, Severity
from clusterctl.reports import HeadStatus, WorkerStatus

ANEW = "`clusterctl recover` brings the cluster back; `clusterctl down` ends it"


def problems_of(sight: Sight, head: HeadStatus, workers: tuple[WorkerStatus, ...]) -> Iterator[Problem]:
    """Yield every problem, those of the way to the nodes first."""
    for name, error in sight.unreachable.items():
        yield Problem("unreachable", Severity.ERROR, f"{name}: {error.message}", error.hint or "")
    if sight.programs:
        yield from _head_problems(sight, head, workers_run=any(worker.pid for worker in workers))
        for worker in workers:
            yield from _worker_problems(sight, head, worker)
    yield from _progress_problems(sight)
    yield from _orphan_problems(sight)
    yield from _record_problems(sight)
    if sight.membership is not None and sight.membership.is_leaving:
        yield Problem(
            "down-unfinished",
            Severity.WARNING,
            f"{sight.head}: a `down` of this cluster has begun and is not done",
            "`clusterctl down` finishes it, `clusterctl up` starts the cluster anew",
        )


def _head_problems(sight: Sight, head: HeadStatus, *, workers_run: bool) -> Iterator[Problem]:
    if head.pid is None and head.health == "stopped":
        but = "; workers still run" if workers_run else ""
        death = _death(sight, sight.head_process)
        yield _error("head-stopped", f"{head.node}: the head does not run{death}{but}", ANEW)
    if head.pid is not None and head.node in sight.suspended:
        yield _suspended(head.node, "head", head.pid)
    elif head.health == Health.NO_ANSWER:
        yield _error(
            "head-silent",
            f"{head.node}: the head lives but does not answer on {urlsplit(head.url or '').netloc}",
            f"`clusterctl logs {head.node}` shows what it does",
        )
    if head.pid is not None:
        yield from _placement_problems(sight, head)


def _placement_problems(sight: Sight, head: HeadStatus) -> Iterator[Problem]:
    """Weights that are not where they were meant to be: the head then serves, but without those devices."""
    process, weights = sight.head_process, sight.weights_mib
    if process is None or weights is None:
        return
    nodes = {f"{worker.address}:{worker.port}": worker.name for worker in sight.workers}
    for endpoint in _words(process, "--rpc"):
        if not weights.get(endpoint):
            yield _error(
                "worker-without-weights",
                f"{nodes.get(endpoint, endpoint)}: the head has loaded no weights there; it serves without it",
                ANEW,
            )
    has_devices = _words(process, "--device") not in ([], ["none"])
    if has_devices and all(name.startswith("CPU") for name in weights):
        yield _error(
            "head-on-processor",
            f"{head.node}: all weights are in the head's own memory, though devices were planned",
            ANEW,
        )


def _worker_problems(sight: Sight, head: HeadStatus, worker: WorkerStatus) -> Iterator[Problem]:
    if worker.state == "stopped":
        found = sight.programs.get(worker.node)
        death = _death(sight, found.process if found else None)
        so = "; the next request ends the head" if head.pid else ""
        yield _error("worker-stopped", f"{worker.node}: the worker is gone{death}{so}", ANEW)
    elif worker.state == "suspended" and worker.pid is not None:
        yield _suspended(worker.node, "worker", worker.pid)
    elif worker.state == "idle" and head.health == Health.OK:
        yield _error(
            "worker-idle",
            f"{worker.node}: the worker runs, but the head is not attached to it and serves without it",
            ANEW,
        )
    elif worker.state == "foreign":
        yield _error(
            "worker-foreign",
            f"{worker.node}: {', '.join(worker.attached)} is attached to the worker, and that is not this head",
            "one worker serves one head; end the other, or give this cluster another rpc.port",
        )
    if worker.pid and set(worker.listening_on) != {worker.endpoint}:
        elsewhere = ", ".join(worker.listening_on) or "nothing"
        yield _error(
            "listening-elsewhere",
            f"{worker.node}: listens on {elsewhere} instead of {worker.endpoint}",
            "RPC has no password; `clusterctl down`, then look at the worker's log",
        )


def _progress_problems(sight: Sight) -> Iterator[Problem]:
    progress = sight.progress
    if sight.health is not Health.OK or sight.suspended:
        return
    if progress.verdict == Verdict.STUCK:
        yield _error(
            "wedged", f"{sight.head}: the head says that it is well, but no token comes: {progress.detail}", ANEW
        )
    elif progress.verdict == Verdict.UNKNOWN and progress.detail:
        yield Problem(
            "no-progress-seen",
            Severity.WARNING,
            f"{sight.head}: whether tokens come can't be told: {progress.detail}",
            "look again, or ask it something; `clusterctl logs` shows what it does",
        )


def _orphan_problems(sight: Sight) -> Iterator[Problem]:
    for name, found in sight.orphans.items():
        record = found.process.record
        yield _error(
            "orphan",
            f"{name}: a {record.role} of this cluster (pid {found.process.pid}) runs on {found.node}, left from a "
            f"run of {record.owner} at {record.started_at} that is not on record",
            "`clusterctl down --force` ends it",
        )


def _record_problems(sight: Sight) -> Iterator[Problem]:
    for former in sight.membership.former if sight.membership else ():
        yield Problem(
            "left-behind",
            Severity.WARNING,
            f"{former.name}: what this cluster ran there could not be ended, and may still run",
            f"`clusterctl down --node {former.name}` ends it once it can be reached; --force forgets it",
        )
    for name in sorted({name for observation in sight.seen.values() for name in observation.damaged}):
        yield Problem(
            "record-damaged",
            Severity.WARNING,
            f"{name}: the record of its program can't be read",
            "`clusterctl down` ends the program, if it runs, and removes the record",
        )


def _death(sight: Sight, process: Process | None) -> str:
    """How a program ended, and why, as far as its exit status and the cluster's logs tell."""
    if process is None:
        return ""
    status = "" if process.exit_status is None else f" (exit status {process.exit_status})"
    if sight.cause is None:
        return status
    node, diagnosis = sight.cause
    where = "" if node == process.record.node else f" (on {node})"
    return f"{status}: {diagnosis.cause}{where}"


def _suspended(node: str, role: str, pid: int) -> Problem:
    return _error(
        f"{role}-suspended",
        f"{node}: the {role} has been stopped by a signal or a debugger, and does nothing",
        f"`kill -CONT {pid}` on the node lets it go on",
    )


def _words(process: Process, flag: str) -> list[str]:
    value = argument_of(process.record.argv, flag)
    return value.split(",") if value else []


def _error(code: str, message: str, hint: str) -> Problem:
    return Problem(code, Severity.ERROR, message, hint)
