"""Why a program failed: its log, read for the first cause instead of the last line."""

from __future__ import annotations

from collections.abc import Mapping

from clusterctl.cluster.record import Process
from clusterctl.errors import ClusterctlError, StartFailed
from clusterctl.llama.diagnosis import Source, diagnose
from clusterctl.model import Role
from clusterctl.remote import commands
from clusterctl.remote.transport import Transport

LOG_LINES = 400
SHOWN_LINES = 12
_SOURCES = {Role.HEAD: Source.HEAD, Role.WORKER: Source.WORKER}


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
    """Say why a program failed, with its log tail; a head that blames a worker is not believed at once.

    All logs are read, because the reason of a head's death is mostly on a worker (llama.cpp issue 22643).
    """
    record = process.record
    log = await read_log_tail(transports[record.node], cluster, record.node)
    found = diagnose(log, source=_SOURCES[record.role], exit_status=process.exit_status)
    if process.exit_status is not None:
        message = f"{message} (exit status {process.exit_status})"
    if found is None:
        return StartFailed(
            message,
            node=record.node,
            hint="its log does not tell why; run the command of `clusterctl plan` on the node by hand",
            log=log[-SHOWN_LINES:],
        )
    return StartFailed(f"{message}: {found.cause}", node=record.node, hint=found.next_step, log=log[-SHOWN_LINES:])
