"""Started is not verified: where a worker really listens, what it speaks, and what the head sees of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_delay, wait_exponential

from clusterctl.cluster.observation import SOCKETS_HINT, observe
from clusterctl.cluster.rpc_probe import Hello, say_hello
from clusterctl.cluster.starting import Launch
from clusterctl.errors import StartFailed
from clusterctl.llama.devices import parse_devices
from clusterctl.llama.diagnosis import Source, diagnose
from clusterctl.model import MIB, Device, Share, Split
from clusterctl.remote import commands
from clusterctl.remote.transport import Transport

# A program that ends at once may lose the end of its log, with the reason why a worker is missing.
LISTINGS = 3
LISTEN_TIMEOUT_S = 20.0


class _NotListening(StartFailed):
    """The worker lives, but its port is not open yet."""


async def verify_worker(transports: Mapping[str, Transport], head: str, cluster: str, launch: Launch) -> Hello:
    """Wait until the worker listens exactly where planned, then greet it from the head.

    Raises:
        StartFailed: if it ends, listens elsewhere, or can't be reached from the head.
    """
    policy = AsyncRetrying(
        retry=retry_if_exception_type(_NotListening),
        wait=wait_exponential(multiplier=0.05, max=1),
        stop=stop_after_delay(LISTEN_TIMEOUT_S),
        reraise=True,
    )
    async for attempt in policy:
        with attempt:
            await _check_listening(transports[launch.command.node], cluster, launch)
    return await say_hello(transports[head], launch.command.node, launch.address, launch.port)


async def _check_listening(worker: Transport, cluster: str, launch: Launch) -> None:
    node = launch.command.node
    seen = await observe(worker, cluster, (launch.port,))
    process = seen.process(node)
    if process is None:
        raise StartFailed("the worker's record has vanished", node=node, hint="run `clusterctl up` again")
    if not process.runs:
        raise StartFailed("the worker ended before it listened", node=node)
    if seen.sockets is None:
        raise StartFailed(
            f"where the worker listens can't be told: the sockets of {node} can't be listed",
            node=node,
            hint=SOCKETS_HINT,
        )
    listening = {socket.address for socket in seen.listening(launch.port)}
    if not listening:
        message = f"the worker lives but does not listen on {launch.address}:{launch.port}"
        raise _NotListening(message, node=node)
    if listening != {launch.address}:
        raise StartFailed(
            f"port {launch.port} is open on {', '.join(sorted(listening))} instead of {launch.address} alone",
            node=node,
            hint="RPC has no password: it must not be reachable from anywhere but the private network",
        )
    if not any(holder.pid == process.pid for holder in seen.holders.get(launch.port, ())):
        raise StartFailed(
            f"port {launch.port} is held by {seen.holders_in_words(launch.port)}, not by the worker just started",
            node=node,
            hint="look at what holds it; where the worker's program is a script, it must `exec` the real one",
        )


@dataclass(frozen=True, slots=True)
class Listing:
    """The devices that the head lists, and all that it printed on the way."""

    devices: tuple[Device, ...]
    text: str


async def see_devices(
    head: Transport, program: Sequence[str], env: Mapping[str, str], endpoints: Sequence[str]
) -> Listing:
    """What the head itself lists with these workers.

    Raises:
        StartFailed: if its listing can't be read.
    """
    told: list[str] = []
    seen: tuple[Device, ...] = ()
    for _ in range(LISTINGS):
        output = await head.run(commands.list_devices(program, endpoints, env))
        told.append(output.stdout.decode(errors="replace"))
        devices = parse_devices(told[-1])
        if devices is None or output.exit_status != 0:
            raise StartFailed(
                f"the head can't list devices with --rpc {','.join(endpoints)}: {told[-1].strip()[-300:]}",
                node=head.node,
                hint="run the command of `clusterctl plan` on the head by hand with --list-devices",
            )
        seen = devices
        if all(any(at in f"{device.name} {device.description}" for device in seen) for at in endpoints):
            break
    return Listing(seen, "\n".join(told))


def match_devices(split: Split, listed: Listing) -> tuple[str, ...]:
    """Return what the head calls each device of the split, in device order.

    A remote device's description is its endpoint; several of one endpoint come in the worker's order.

    Raises:
        StartFailed: if a planned device is missing, or has less free memory than it is to hold.
    """
    waiting = list(listed.devices)
    names = []
    for share in split.shares:
        device = next((d for d in waiting if _is(share, d)), None)
        if device is None:
            raise _unseen(share, listed)
        waiting.remove(device)
        if device.free_mib is not None and device.free_mib * MIB < share.memory.total_bytes:
            raise StartFailed(
                f"{share.offer.device} has {device.free_mib} MiB free now, "
                f"but is to hold {share.memory.total_bytes // MIB} MiB",
                node=share.offer.node,
                hint="something else took the memory since it was measured; run `clusterctl up` again",
            )
        names.append(device.name)
    return tuple(names)


def _unseen(share: Share, listed: Listing) -> StartFailed:
    seen = ", ".join(f"{device.name} ({device.description})" for device in listed.devices) or "none"
    message = f"the head does not see {share.offer.device} at {share.offer.rpc_endpoint or 'home'}; it sees {seen}"
    hint = "compare the builds with `clusterctl check`"
    if found := diagnose(listed.text.splitlines(), source=Source.PROBE):
        message, hint = f"{message}: {found.cause}", found.next_step
    return StartFailed(message, node=share.offer.node, hint=hint)


def _is(share: Share, device: Device) -> bool:
    endpoint = share.offer.rpc_endpoint
    if endpoint is None:
        return device.name == share.offer.device
    return device.description == endpoint or device.name == f"RPC[{endpoint}]"
