"""The RPC handshake as bytes; the answers were recorded from real workers."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.llama.wire import (
    PROTOCOL_BUILDS,
    RpcProtocol,
    accepts,
    builds_of_protocol,
    decode_hello,
    hello_request,
    missing_bytes,
    protocol_of_build,
)

ANSWER_B10068 = bytes.fromhex("1c0000000000000004000300" + "00" * 24)
ANSWER_B10434 = bytes.fromhex("1c0000000000000005000000" + "00" * 24)


def sized(payload: bytes) -> bytes:
    return struct.pack("<Q", len(payload)) + payload


def test_requests_have_a_command_a_size_and_a_payload() -> None:
    assert hello_request() == b"\x0e" + (24).to_bytes(8, "little") + bytes(24)
    assert hello_request(with_capabilities=False) == b"\x0e" + bytes(8)


def test_recorded_answers_name_the_protocol() -> None:
    assert decode_hello(ANSWER_B10068) == RpcProtocol(4, 0, 3)
    assert str(decode_hello(ANSWER_B10434)) == "5.0.0"


@pytest.mark.parametrize("payload", [b"\x02\x00\x00", b"\x03\x06\x01\x00"])
def test_older_answers_are_shorter(payload: bytes) -> None:
    assert decode_hello(sized(payload)) == RpcProtocol(*payload[:3])


@pytest.mark.parametrize(
    "received",
    [
        b"",
        ANSWER_B10068[:-1],
        ANSWER_B10068 + b"\x00",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        sized(bytes(28)),
        sized(b"\x05" + bytes(4)),
    ],
)
def test_what_is_no_answer_to_hello_names_no_protocol(received: bytes) -> None:
    assert decode_hello(received) is None


def test_the_reader_is_told_how_many_bytes_are_missing() -> None:
    assert missing_bytes(b"") == 8
    assert missing_bytes(ANSWER_B10068[:8]) == 28
    assert missing_bytes(ANSWER_B10068[:20]) == 16
    assert missing_bytes(ANSWER_B10068) == 0


def test_a_hostile_size_is_not_waited_for() -> None:
    assert missing_bytes(b"\xff" * 8) == 0


@given(st.binary(max_size=80))
def test_no_bytes_break_a_decoder_or_ask_for_much(received: bytes) -> None:
    assert 0 <= missing_bytes(received) <= 72
    protocol = decode_hello(received)
    assert protocol is None or received[8:11] == bytes((protocol.major, protocol.minor, protocol.patch))


@given(st.binary(max_size=80))
def test_reading_what_is_missing_always_ends(received: bytes) -> None:
    first = missing_bytes(received)
    whole = received + bytes(first)
    assert missing_bytes(whole + bytes(missing_bytes(whole))) == 0


@pytest.mark.parametrize(
    ("head", "worker", "expected"),
    [
        ((5, 0, 0), (5, 0, 0), True),
        ((4, 0, 3), (4, 0, 1), True),
        ((5, 1, 0), (5, 0, 0), True),
        ((5, 0, 0), (5, 1, 0), False),
        ((5, 0, 0), (4, 0, 3), False),
        ((4, 0, 3), (5, 0, 0), False),
    ],
)
def test_a_head_accepts_its_own_major_and_no_newer_minor(
    head: tuple[int, int, int], worker: tuple[int, int, int], expected: bool
) -> None:
    assert accepts(RpcProtocol(*head), RpcProtocol(*worker)) is expected


def test_an_unknown_protocol_is_neither_accepted_nor_refused() -> None:
    assert accepts(None, RpcProtocol(5, 0, 0)) is None
    assert accepts(RpcProtocol(5, 0, 0), None) is None


def test_builds_and_protocols_name_each_other() -> None:
    assert protocol_of_build(10068) == RpcProtocol(4, 0, 3)
    assert protocol_of_build(11434) == RpcProtocol(7, 0, 0)
    assert protocol_of_build(10170) is protocol_of_build(None) is None
    assert builds_of_protocol(RpcProtocol(4, 0, 3)) == (10035, 10188)
    assert builds_of_protocol(RpcProtocol(3, 6, 0)) == (5717, 9092)
    assert builds_of_protocol(RpcProtocol(8, 0, 0)) == (11435, None)


def test_the_known_builds_rise_with_the_protocol() -> None:
    ends = [end for row in PROTOCOL_BUILDS for end in (row.first, row.last)]
    assert ends == sorted(ends)
    assert [row.protocol for row in PROTOCOL_BUILDS] == sorted(row.protocol for row in PROTOCOL_BUILDS)
