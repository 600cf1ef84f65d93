"""Proof that a stopped program is gone: its record, its port, and the memory of its devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_delay, wait_exponential

from clusterctl.cluster.membership import Member
from clusterctl.cluster.node_memory import NodeMemory, read_memory
from clusterctl.cluster.observation import SOCKETS_HINT, Observation, observe
from clusterctl.cluster.record import Process
from clusterctl.cluster.steps import Tell, telling
from clusterctl.errors import Degraded
from clusterctl.llama.devices import parse_devices
from clusterctl.model import Device, Outcome
from clusterctl.remote import commands
from clusterctl.remote.sockets import may_overlap
from clusterctl.remote.transport import Transport

# A driver may take some seconds to give back what a killed process held.
MEMORY_TIMEOUT_S = 15.0
# Desktops, and drivers themselves, take and give back this much at any time.
TOLERANCE_MIB = 512
TOLERANCE_SHARE = 0.03


class PortOpen(Degraded):
    """Somebody listens where a program of the cluster did."""


class _StillHeld(Degraded):
    """Memory has not come back yet."""


async def prove_gone(transport: Transport, cluster: str, name: str, process: Process, tell: Tell) -> None:
    """Look again, and return if nothing of a program that was just stopped is left.

    Raises:
        Degraded: with what is left.
        NodeUnreachable: if the node is gone.
    """
    record = process.record
    with telling(tell, f"prove that the {record.role} is gone", name) as note:
        seen = await observe(transport, cluster, (record.port,))
        if seen.process(record.node):
            raise Degraded("its record is still there", node=name)
        _prove_closed(seen, name, record.address, record.port)
        memory = await _prove_memory(transport, cluster, process) if process.runs else ()
        note.detail = ", ".join(("no process", f"port {record.port} closed", *memory))


async def prove_silent(transport: Transport, cluster: str, name: str, member: Member, tell: Tell) -> None:
    """Look, and return if nobody listens where a member would of which nothing is on record.

    Raises:
        Degraded: if somebody does, or that can't be told.
        NodeUnreachable: if the node is gone.
    """
    with telling(tell, f"prove that the {member.role} is gone", name) as note:
        seen = await observe(transport, cluster, (member.port,))
        _prove_closed(seen, name, member.address, member.port)
        note.outcome, note.detail = Outcome.UNCHANGED, f"nothing on record, port {member.port} closed"


def _prove_closed(seen: Observation, name: str, address: str, port: int) -> None:
    """Return if nobody listens where the program did: before it was started, nobody may have either."""
    if seen.sockets is None:
        raise Degraded(
            f"whether port {port} is closed can't be told: the node's sockets can't be listed",
            node=name,
            hint=SOCKETS_HINT,
        )
    if any(may_overlap(socket.address, address) for socket in seen.listening(port)):
        raise PortOpen(
            f"port {port} is still open, held by {seen.holders_in_words(port)}",
            node=name,
            hint="end what holds it yourself if it belongs to the cluster; clusterctl ends only what it started; "
            f"if it is somebody else's, `clusterctl down --node {name} --force` leaves it to them",
        )


async def _prove_memory(transport: Transport, cluster: str, process: Process) -> tuple[str, ...]:
    """Return what the devices have free again, in words.

    Raises:
        Degraded: if they have clearly less than before the program started, and nobody else holds it.
    """
    if not process.record.free_before_mib:
        return ()
    policy = AsyncRetrying(
        retry=retry_if_exception_type(_StillHeld),
        wait=wait_exponential(multiplier=0.2, max=2),
        stop=stop_after_delay(MEMORY_TIMEOUT_S),
        reraise=True,
    )
    words: tuple[str, ...] = ()
    async for attempt in policy:
        with attempt:
            words = await _compare_memory(transport, cluster, process)
    return words


async def _compare_memory(transport: Transport, cluster: str, process: Process) -> tuple[str, ...]:
    record = process.record
    output = await transport.run(commands.own_devices(record.argv, record.role, record.env))
    devices = parse_devices(output.stdout.decode(errors="replace"))
    if devices is None:
        return ("the memory of its devices can't be read again",)
    missing = missing_mib(record.free_before_mib, devices)
    if not missing:
        free = ((d.name, d.free_mib) for d in devices if d.name in record.free_before_mib)
        return tuple(f"{name} has {mib} MiB free again" for name, mib in free)
    others = others_grown(await read_memory(transport, cluster), process)
    if sum(missing.values()) > sum(others.values()):
        lacks = ", ".join(f"{name} lacks {mib} MiB" for name, mib in missing.items())
        raise _StillHeld(
            f"memory has not come back: {lacks} of what was free before `up`",
            node=record.node,
            hint="look at what holds it (nvidia-smi, rocm-smi); a driver that keeps it needs a reset or a reboot",
        )
    held = ", ".join(f"{name} holds {mib} MiB more" for name, mib in others.items())
    return (f"less memory is free than before `up`, but not by us: {held}",)


def missing_mib(before_mib: Mapping[str, int], devices: Sequence[Device]) -> dict[str, int]:
    """Return how much less each device has free than before, where that is more than comes and goes by itself.

    A device that is not listed any more, or does not tell, is left out: nothing is known of it.
    """
    found = {}
    for device in devices:
        if device.free_mib is None or device.name not in before_mib:
            continue
        missing = before_mib[device.name] - device.free_mib
        if missing > max(TOLERANCE_MIB, TOLERANCE_SHARE * before_mib[device.name]):
            found[device.name] = missing
    return found


def others_grown(memory: NodeMemory, process: Process) -> dict[str, int]:
    """Return who else holds more of cards than when the process was started, each with the MiB by which it grew.

    Nobody, if it is not on record what they held then.
    """
    before_mib = process.record.held_before_mib
    if before_mib is None:
        return {}
    names = {app.pid: app.name for app in memory.apps}
    grown = {pid: mib - before_mib.get(str(pid), 0) for pid, mib in memory.apps_mib.items() if pid != process.pid}
    return {f"{names[pid]} (pid {pid})": mib for pid, mib in grown.items() if mib > 0}
