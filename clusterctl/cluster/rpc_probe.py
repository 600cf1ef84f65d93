"""HELLO to an idle worker, from the head's side of the network.

A worker serves one client at a time, so the connection is closed at once, and this is never used on a worker
that a head may be attached to.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from clusterctl.errors import StartFailed
from clusterctl.llama.wire import RpcProtocol, decode_hello, hello_request, missing_bytes
from clusterctl.remote.transport import Reader, Transport

PROBE_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class Hello:
    """A worker's answer: its protocol, and how long the answer took from the head, in milliseconds."""

    protocol: RpcProtocol
    round_trip_ms: float


async def say_hello(head: Transport, node: str, address: str, port: int) -> Hello:
    """Greet the worker of `node` at `address:port` from the head and return its answer.

    Raises:
        StartFailed: if the head can't reach the worker, or something else answers there.
        NodeUnreachable: if the head itself is gone, or lets no connection through.
    """
    for with_capabilities in (True, False):
        answer, seconds = await _exchange(
            head, node, (address, port), hello_request(with_capabilities=with_capabilities)
        )
        if protocol := decode_hello(answer):
            return Hello(protocol, seconds * 1000)
    raise StartFailed(
        f"what answers on {address}:{port} is not a llama.cpp RPC server of a known protocol",
        node=node,
        hint="look at what holds the port on the worker",
    )


async def _exchange(head: Transport, node: str, endpoint: tuple[str, int], request: bytes) -> tuple[bytes, float]:
    """Send a request over a connection of its own; return the answer and the seconds it took."""
    name = f"{endpoint[0]}:{endpoint[1]}"
    try:
        reader, writer = await head.open_connection(*endpoint, PROBE_TIMEOUT_S)
    except ConnectionRefusedError as error:
        raise StartFailed(
            f"the head gets `connection refused` from {name}",
            node=node,
            hint="the worker listens elsewhere, or a firewall rejects the port",
        ) from error
    except OSError as error:
        raise StartFailed(
            f"the head can't reach {name} ({str(error) or 'no answer'})",
            node=node,
            hint="check the route and the firewall between head and worker on the private network",
        ) from error
    clock = asyncio.get_running_loop().time
    began = clock()
    try:
        writer.write(request)
        async with asyncio.timeout(PROBE_TIMEOUT_S):
            return await _read_answer(reader), clock() - began
    except TimeoutError as error:
        raise StartFailed(
            f"{name} accepts the connection but does not answer: it serves another head, or is suspended",
            node=node,
            hint="one worker serves one head; stop the other head, or use another port; `clusterctl status` tells",
        ) from error
    finally:
        writer.close()


async def _read_answer(reader: Reader) -> bytes:
    """Read until the answer is whole, can't become one, or the other side closes."""
    answer = b""
    while missing := missing_bytes(answer):
        chunk = await reader.read(missing)
        if not chunk:
            break
        answer += chunk
    return answer
