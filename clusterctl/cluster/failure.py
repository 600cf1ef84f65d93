"""Why a program failed: its log, read for the first cause instead of the last line."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from clusterctl.cluster.observation import observe
from clusterctl.errors import ClusterctlError, NodesFailed, NotReady, StartFailed, raise_all
from clusterctl.llama.diagnosis import Diagnosis, NodeLog, Source, diagnose_cluster
from clusterctl.remote import commands
from clusterctl.remote.fanout import on_all
from clusterctl.remote.transport import Transport

LOG_LINES = 400
SHOWN_LINES = 12
NO_CAUSE_HINT = "its log does not tell why; run the command of `clusterctl plan` on the node by hand"


async def read_log_tail(transport: Transport, cluster: str, node: str) -> tuple[str, ...]:
    """The last lines of a program's log; none if there is no log, or no way to it."""
    try:
        output = await transport.run(commands.log_tail(cluster, node, LOG_LINES))
    except ClusterctlError:
        return ()
    return tuple(output.stdout.decode(errors="replace").splitlines()[1:])


@asynccontextmanager
async def explaining(transports: Mapping[str, Transport], cluster: str) -> AsyncIterator[None]:
    """Explain what fails in the body at once: whoever undoes what was started removes the logs.

    Raises:
        ClusterctlError: what the body raised, explained.
    """
    try:
        yield
    except ClusterctlError as error:
        errors = error.errors if isinstance(error, NodesFailed) else (error,)
        raise_all([await explain(transports, cluster, each) for each in errors])


async def explain(transports: Mapping[str, Transport], cluster: str, error: ClusterctlError) -> ClusterctlError:
    """Say why a program failed: the first cause in the logs of the whole cluster, and on which node it is.

    The log that tells it is shown, else the program's own. A head that blames a worker is not believed before
    that worker's own log has been read (llama.cpp issue 22643). Other errors are returned as they are.
    """
    if not isinstance(error, StartFailed | NotReady) or error.node is None or error.node not in transports:
        return error
    logs = await _read_logs(transports, cluster)
    own = logs[error.node]
    message = error.message if own.exit_status is None else f"{error.message} (exit status {own.exit_status})"
    # Of causes that explain as much, a program's own goes first.
    found = diagnose_cluster({error.node: own, **logs})
    if found is None:
        log = own.lines[-SHOWN_LINES:]
        return type(error)(message, node=error.node, hint=error.hint or NO_CAUSE_HINT, log=log)
    node, diagnosis = found
    cause = diagnosis.cause if node == error.node else f"{diagnosis.cause} (on {node})"
    log = logs[node].lines[-SHOWN_LINES:]
    return type(error)(f"{message}: {cause}", node=error.node, hint=diagnosis.next_step, log=log)


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
