"""Ending programs that clusterctl started: by record, never by name or port."""

from __future__ import annotations

from clusterctl.cluster.steps import Note, Tell, telling
from clusterctl.errors import Degraded
from clusterctl.model import Outcome, Role
from clusterctl.remote import commands
from clusterctl.remote.answer import whole_number
from clusterctl.remote.transport import Transport

# A head leaves at once on SIGTERM, or waits for a worker that never answers; a worker may have to give much memory
# back first.
GRACE_S = {Role.HEAD: 4, Role.WORKER: 10}
KILL_ALLOWANCE_S = 30
PURGE_TIMEOUT_S = 600.0


async def stop_recorded(
    transport: Transport, cluster: str, node: str, role: Role, tell: Tell, label: str | None = None
) -> bool:
    """End the program that the machine's record for `node` names; return whether there was anything to do.

    `label` is what to call it, if not as the node.

    Raises:
        Degraded: if the process is still there after SIGKILL, as one stuck in a driver may be; or it, or what it
            had started, can't be told to be ours.
        NodeUnreachable: if the node is gone.
    """
    with telling(tell, f"stop the {role}", label or node) as note:
        return await _end(transport, cluster, node, GRACE_S[role], note)


async def remove_damaged(transport: Transport, cluster: str, node: str, tell: Tell) -> bool:
    """Remove a record that can't be read, after its program if that runs; return whether there was anything to do.

    Raises:
        Degraded: as `stop_recorded` does.
        NodeUnreachable: if the node is gone.
    """
    with telling(tell, "remove a damaged record", node) as note:
        return await _end(transport, cluster, node, max(GRACE_S.values()), note)


async def _end(transport: Transport, cluster: str, node: str, grace_s: int, note: Note) -> bool:
    output = await transport.run(
        commands.stop(cluster, node, grace_s=grace_s), timeout_s=grace_s + KILL_ALLOWANCE_S
    )
    word = "recorded" if output.recorded else output.stdout.decode(errors="replace").strip()
    word, _, pid = word.partition(" ")
    note.outcome, note.detail = _OUTCOMES.get(word, (Outcome.DONE, word))
    if word in _REFUSALS:
        message, hint = _REFUSALS[word]
        raise Degraded(message.format(pid=pid), node=transport.node, hint=hint.format(pid=pid))
    return word != "absent"


async def purge_cache_of(transport: Transport, cluster: str, tell: Tell) -> bool:
    """Remove what the cluster's workers have cached on a node; return whether there was anything.

    Raises:
        Degraded: if some of it can't be removed.
        NodeUnreachable: if the node is gone.
    """
    with telling(tell, "remove the worker's cache", transport.node) as note:
        output = await transport.run(commands.purge(cluster), timeout_s=PURGE_TIMEOUT_S)
        if output.recorded:
            note.outcome = Outcome.WOULD
            return False
        if output.exit_status != 0:
            raise Degraded(
                f"the worker's cache can't be removed: {output.stderr.strip()[:200]}",
                node=transport.node,
                hint=f"remove ~/.cache/clusterctl/{cluster} on the node by hand",
            )
        kib = whole_number(output.stdout.decode(errors="replace"))
        note.outcome = Outcome.UNCHANGED if kib == 0 else Outcome.DONE
        note.detail = "nothing was there" if kib == 0 else "" if kib is None else f"{kib // 1024} MiB"
        return kib != 0


_REFUSALS = {
    "stuck": (
        "the process does not end, not even by SIGKILL",
        "it waits in the kernel, mostly for a driver; only a reboot of the node ends it",
    ),
    "unsure": (
        "process {pid} has other arguments than it was started with, so it may not be ours",
        "look at it (ps -ww -p {pid}), end it by hand if it is, and run `clusterctl down` again",
    ),
    "outlived": (
        "process {pid} has ended, but what it had started lives on, and may not be ours",
        "look at it (pgrep -l -g {pid}), end it if it is (kill -- -{pid}), and run `clusterctl down` again",
    ),
}
_OUTCOMES = {
    "recorded": (Outcome.WOULD, ""),
    "absent": (Outcome.UNCHANGED, "nothing was there"),
    "ended": (Outcome.DONE, "had ended already; record removed"),
    "stopped": (Outcome.DONE, ""),
    "killed": (Outcome.DONE, "by SIGKILL"),
}
