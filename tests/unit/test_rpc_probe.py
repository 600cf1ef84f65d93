"""HELLO over a real connection: what a worker answers, and what silence, refusal and strangers come to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from clusterctl.cluster import rpc_probe
from clusterctl.cluster.rpc_probe import say_hello
from clusterctl.errors import StartFailed
from clusterctl.llama.wire import hello_request
from clusterctl.remote.local import LocalTransport
from tests.unit.test_wire import ANSWER_B10434

HERE = "127.0.0.1"
Respond = Callable[[bytes], bytes | None]


def greet(respond: Respond) -> str:
    """The protocol that is understood of a server that answers so; `None` leaves it silent."""

    served = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.append(asyncio.current_task())
        answer = respond(await reader.read(64))
        if answer is None:
            await reader.read()  # until the other side has had enough
        else:
            writer.write(answer)
        writer.close()
        await writer.wait_closed()

    async def main() -> str:
        async with await asyncio.start_server(serve, HERE, 0) as server:
            port = server.sockets[0].getsockname()[1]
            try:
                return str((await say_hello(LocalTransport("head"), "w1", HERE, port)).protocol)
            finally:
                await asyncio.gather(*filter(None, served))

    return asyncio.run(main())


def test_a_worker_tells_its_protocol() -> None:
    assert greet(lambda _: ANSWER_B10434) == "5.0.0"


def test_a_worker_of_another_age_is_asked_again_in_its_own_form() -> None:
    old = hello_request(with_capabilities=False)
    assert greet(lambda request: b"\x03" + bytes(7) + b"\x02\x00\x00" if request == old else b"") == "2.0.0"


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", ANSWER_B10434[:-1]])
def test_what_is_no_worker_is_told_as_such(answer: bytes) -> None:
    with pytest.raises(StartFailed, match=r"is not a llama\.cpp RPC server") as caught:
        greet(lambda _: answer)
    assert caught.value.node == "w1"


def test_a_worker_that_serves_another_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rpc_probe, "PROBE_TIMEOUT_S", 0.1)
    with pytest.raises(StartFailed, match="does not answer: it serves another head"):
        greet(lambda _: None)


def test_a_refused_connection_is_told_with_what_it_means() -> None:
    async def main() -> None:
        async with await asyncio.start_server(lambda _, __: None, HERE, 0) as server:
            port = server.sockets[0].getsockname()[1]
        await say_hello(LocalTransport("head"), "w1", HERE, port)

    with pytest.raises(StartFailed, match="connection refused") as caught:
        asyncio.run(main())
    assert "listens elsewhere" in str(caught.value.hint)
