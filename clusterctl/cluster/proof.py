"""Proof that a stopped program is gone: its record, its port, and the memory of its devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_delay, wait_exponential

from clusterctl.cluster.node_memory import NodeMemory, read_memory
from clusterctl.cluster.observation import Observation, observe
from clusterctl.cluster.record import Process
from clusterctl.cluster.steps import Tell, telling
from clusterctl.errors import Degraded
from clusterctl.llama.devices import parse_devices
from clusterctl.model import Device
from clusterctl.remote import commands
from clusterctl.remote.transport import Transport

# A driver may take some seconds to give back what a killed process held.
MEMORY_TIMEOUT_S = 15.0
# Desktops, and drivers themselves, take and give back this much at any time.
TOLERANCE_MIB = 512
TOLERANCE_SHARE = 0.03


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
        if _holds_port(seen, process):
            raise Degraded(f"port {record.port} is still open", node=name)
        memory = await _prove_memory(transport, cluster, process) if process.runs else ()
        note.detail = ", ".join(("no process", f"port {record.port} closed", *memory))


def _holds_port(seen: Observation, process: Process) -> bool:
    """Whether the port is open by this process, or by one that nobody tells."""
    record = process.record
    holders = seen.holders.get(record.port, ())
    is_open = any(socket.address == record.address for socket in seen.listening(record.port))
    return is_open and (not holders or any(holder.pid == process.pid for holder in holders))


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
    others = others_holding(await read_memory(transport, cluster), process.pid)
    if sum(missing.values()) > sum(others.values()):
        lacks = ", ".join(f"{name} lacks {mib} MiB" for name, mib in missing.items())
        raise _StillHeld(
            f"memory has not come back: {lacks} of what was free before `up`",
            node=record.node,
            hint="look at what holds it (nvidia-smi, rocm-smi); a driver that keeps it needs a reset or a reboot",
        )
    held = ", ".join(f"{name} holds {mib} MiB" for name, mib in others.items())
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


def others_holding(memory: NodeMemory, own_pid: int | None) -> dict[str, int]:
    """Return who else holds memory of cards, as far as their tools tell, each with the MiB."""
    return {
        f"{app.name} (pid {app.pid})": used_mib
        for app in memory.apps
        if app.pid != own_pid and (used_mib := app.used_mib)
    }
