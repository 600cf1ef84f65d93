"""The RPC wire format, as far as a probe needs it: bytes in, values out, no sockets.

A request is `command u8 | size u64le | payload`, a response `size u64le | payload`; HELLO comes first on
every connection (llama.cpp ggml/src/ggml-rpc/ggml-rpc.cpp). A worker serves one client at a time: whoever
connects must close soon, and a connection that gets no answer means a busy worker, not a dead one.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

_HELLO = 14

_SIZE = struct.Struct("<Q")
_REQUEST = struct.Struct("<BQ")
_CAPABILITIES = bytes(24)  # all zero: plain TCP, no RDMA
_HELLO_SIZES = (3, 4, 28)  # numbers; with padding; with capabilities
_LONGEST_PAYLOAD = 64


@dataclass(frozen=True, slots=True, order=True)
class RpcProtocol:
    """A version of the RPC protocol."""

    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


@dataclass(frozen=True, slots=True)
class ProtocolBuilds:
    """Builds known to speak a protocol: at least from `first` to `last`."""

    protocol: RpcProtocol
    first: int
    last: int


PROTOCOL_BUILDS = tuple(
    ProtocolBuilds(RpcProtocol(*protocol), first, last)
    for protocol, first, last in (
        ((2, 0, 0), 5716, 5716),
        ((4, 0, 0), 9093, 9536),
        ((4, 0, 1), 9592, 9951),
        ((4, 0, 2), 9976, 10034),
        ((4, 0, 3), 10059, 10156),
        ((5, 0, 0), 10189, 10448),
        ((5, 1, 0), 10502, 10630),
        ((6, 0, 0), 10705, 10901),
        ((7, 0, 0), 10985, 11434),
    )
)
"""Read in ggml/include/ggml-rpc.h of these builds; b5716 from its banner (llama.cpp issue 14307)."""


def hello_request(*, with_capabilities: bool = True) -> bytes:
    """Return HELLO. A worker of another age closes the connection without an answer: then try the other form."""
    payload = _CAPABILITIES if with_capabilities else b""
    return _REQUEST.pack(_HELLO, len(payload)) + payload


def missing_bytes(received: bytes) -> int:
    """Return how many more bytes the response needs; 0 when it is whole, or can't be a response at all."""
    if len(received) < _SIZE.size:
        return _SIZE.size - len(received)
    (size,) = _SIZE.unpack_from(received)
    return 0 if size > _LONGEST_PAYLOAD else max(0, _SIZE.size + size - len(received))


def decode_hello(received: bytes) -> RpcProtocol | None:
    """Return the worker's protocol from a whole response to HELLO; `None` if it is none."""
    payload = _payload(received)
    if payload is None or len(payload) not in _HELLO_SIZES or payload[0] == 0:
        return None
    return RpcProtocol(*payload[:3])


def accepts(head: RpcProtocol | None, worker: RpcProtocol | None) -> bool | None:
    """Return whether a head would go on after the worker's HELLO; `None` if a protocol is unknown.

    `negotiate_hello` in ggml-rpc.cpp asks for the same major and a minor that is not greater. The patch is
    not compared although it moves with the table of operators: accepted does not mean compatible.
    """
    if head is None or worker is None:
        return None
    return worker.major == head.major and worker.minor <= head.minor


def protocol_of_build(number: int | None) -> RpcProtocol | None:
    """Return the protocol that a build speaks, `None` where that is not known for sure."""
    if number is None:
        return None
    return next((row.protocol for row in PROTOCOL_BUILDS if row.first <= number <= row.last), None)


def builds_of_protocol(protocol: RpcProtocol) -> tuple[int, int | None]:
    """Return the widest range of builds that can speak a protocol; no upper end for one newer than all known."""
    older = [row.last for row in PROTOCOL_BUILDS if row.protocol < protocol]
    newer = [row.first for row in PROTOCOL_BUILDS if row.protocol > protocol]
    return max(older, default=-1) + 1, min(newer) - 1 if newer else None


def _payload(received: bytes) -> bytes | None:
    if len(received) < _SIZE.size or _SIZE.unpack_from(received)[0] != len(received) - _SIZE.size:
        return None
    return received[_SIZE.size :]
