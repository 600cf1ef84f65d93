"""Starting one program of a plan and seeing that it lives."""

from __future__ import annotations

import getpass
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from clusterctl.cluster.failure import explain
from clusterctl.cluster.record import Process, ProcessState, Record
from clusterctl.errors import StartFailed
from clusterctl.model import NodeCommand
from clusterctl.remote import commands
from clusterctl.remote.transport import Transport


@dataclass(frozen=True, slots=True)
class Launch:
    """A call with what goes on record beside it."""

    command: NodeCommand
    address: str
    port: int
    build: str
    inputs: str
    free_before_mib: Mapping[str, int] = field(default_factory=dict)

    def record(self, cluster: str) -> Record:
        """The record to keep on the node."""
        return Record(
            cluster=cluster,
            node=self.command.node,
            role=self.command.role,
            argv=self.command.argv,
            env=dict(self.command.env),
            address=self.address,
            port=self.port,
            build=self.build,
            owner=f"{getpass.getuser()}@{socket.gethostname()}",
            started_at=datetime.now(UTC).isoformat(timespec="seconds"),
            inputs=self.inputs,
            free_before_mib=dict(self.free_before_mib),
        )


async def start(transports: Mapping[str, Transport], cluster: str, launch: Launch) -> bool:
    """Start the program and return once it runs under its own name; `False` in a dry run.

    Raises:
        StartFailed: if it ended at once, with the likely cause and its log; or could not be started.
    """
    node, record = launch.command.node, launch.record(cluster)
    output = await transports[node].run(
        commands.start(cluster, node, launch.command.argv, record=record.to_json(), env=launch.command.env)
    )
    if output.recorded:
        return False
    state, _, rest = output.stdout.decode(errors="replace").partition("\n")
    if output.exit_status == 3:
        raise StartFailed(
            f"a {record.role} of this cluster runs there already",
            node=node,
            hint="`clusterctl status` shows it; `clusterctl down` or `up --replace` ends it",
        )
    if output.exit_status != 0:
        raise StartFailed(
            f"the {record.role} could not be started: {output.stderr.strip()[:300]}",
            node=node,
            hint="look at free disk space and at the user's rights in ~/.local/state",
        )
    if state != ProcessState.RUNNING:
        exit_status = rest.split("\n")[1] if rest.count("\n") > 1 else ""
        process = Process(record, ProcessState.ENDED, None, int(exit_status) if exit_status.isdigit() else None)
        raise await explain(transports, cluster, process, f"the {record.role} ended at once")
    return True
