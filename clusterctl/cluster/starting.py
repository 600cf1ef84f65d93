"""Starting one program of a plan and seeing that it lives."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from clusterctl.cluster.failure import explain
from clusterctl.cluster.lock import user_name
from clusterctl.cluster.node_memory import read_memory
from clusterctl.cluster.record import ProcessState, Record
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

    def record(self, cluster: str, held_before_mib: dict[str, int] | None = None) -> Record:
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
            owner=f"{user_name()}@{socket.gethostname()}",
            started_at=datetime.now(UTC).isoformat(timespec="seconds"),
            inputs=self.inputs,
            free_before_mib=dict(self.free_before_mib),
            held_before_mib=held_before_mib,
        )


async def start(transports: Mapping[str, Transport], cluster: str, launch: Launch) -> bool:
    """Start the program and return once it runs under its own name; `False` in a dry run.

    Raises:
        StartFailed: if it ended at once, with the likely cause and its log; or could not be started.
    """
    node = launch.command.node
    record = launch.record(cluster, await _held_by_others(transports[node], cluster, launch))
    output = await transports[node].run(
        commands.start(cluster, node, launch.command.argv, record=record.to_json(), env=launch.command.env)
    )
    if output.recorded:
        return False
    state = output.stdout.decode(errors="replace").partition("\n")[0]
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
    if state == ProcessState.UNSURE:
        raise StartFailed(
            f"the {record.role} was ended again: it runs with other arguments than it was given, so that nobody "
            "could tell later that it is ours",
            node=node,
            hint=f"if {record.argv[0]} is a script, let it pass its arguments on as they are, as the last ones",
        )
    if state != ProcessState.RUNNING:
        raise await explain(transports, cluster, StartFailed(f"the {record.role} ended at once", node=node))
    return True


async def _held_by_others(transport: Transport, cluster: str, launch: Launch) -> dict[str, int] | None:
    """What others hold of the cards already, which must not excuse later what the program leaves behind."""
    if not any(name.startswith("CUDA") for name in launch.free_before_mib):
        return None
    return {str(pid): mib for pid, mib in (await read_memory(transport, cluster)).apps_mib.items()}
