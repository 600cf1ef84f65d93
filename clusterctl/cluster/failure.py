"""Why a program failed: its log, read for the first cause instead of the last line."""

from __future__ import annotations

from collections.abc import Mapping

from clusterctl.cluster.observation import observe
from clusterctl.cluster.record import Process
from clusterctl.errors import ClusterctlError, StartFailed
from clusterctl.llama.diagnosis import Diagnosis, NodeLog, Source, diagnose_cluster
from clusterctl.remote import commands
from clusterctl.remote.fanout import on_all
from clusterctl.remote.transport import Transport

LOG_LINES = 400
SHOWN_LINES = 12


async def read_log_tail(transport: Transport, cluster: str, node: str) -> tuple[str, ...]:
    """The last lines of a program's log; none if there is no log, or no way to it."""
    try:
        output = await transport.run(commands.log_tail(cluster, node, LOG_LINES))
    except ClusterctlError:
        return ()
    return tuple(output.stdout.decode(errors="replace").splitlines()[1:])


async def explain(
    transports: Mapping[str, Transport], cluster: str, process: Process, message: str
) -> StartFailed:
    """Say why a program failed: the first cause in the logs of the whole cluster, and on which node it is.

    A head that blames a worker is not believed before that worker's own log has been read
    (llama.cpp issue 22643).
    """
    record = process.record
    if process.exit_status is not None:
        message = f"{message} (exit status {process.exit_status})"
    logs = await _read_logs(transports, cluster)
    logs[record.node] = NodeLog(Source(record.role), logs[record.node].lines, process.exit_status)
    log = logs[record.node].lines[-SHOWN_LINES:]
    found = diagnose_cluster(logs)
    if found is None:
        hint = "its log does not tell why; run the command of `clusterctl plan` on the node by hand"
        return StartFailed(message, node=record.node, hint=hint, log=log)
    node, diagnosis = found
    cause = diagnosis.cause if node == record.node else f"{diagnosis.cause} (on {node})"
    return StartFailed(
        f"{message}: {cause}", node=record.node, hint=diagnosis.next_step, log=logs[node].lines[-SHOWN_LINES:]
    )


async def find_cause(transports: Mapping[str, Transport], cluster: str) -> tuple[str, Diagnosis] | None:
    """Return the first cause that the logs and exit statuses of a cluster tell, and on which node it is."""
    return diagnose_cluster(await _read_logs(transports, cluster))


async def _read_logs(transports: Mapping[str, Transport], cluster: str) -> dict[str, NodeLog]:
    """The log and the exit status of every node's own program; an empty log where there is none."""

    async def read(node: str, transport: Transport) -> NodeLog:
        process = (await observe(transport, cluster)).process(node)
        source = Source(process.record.role) if process else Source.WORKER
        lines = await read_log_tail(transport, cluster, node) if process else ()
        return NodeLog(source, lines, process.exit_status if process else None)

    read_all = await on_all(transports, read)
    return {node: read_all.done.get(node, NodeLog(Source.WORKER, ())) for node in transports}
