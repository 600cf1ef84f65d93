"""Sockets of a node, from the tables of Linux and from lsof's of macOS."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.remote.sockets import Socket, may_overlap, parse_sockets

# From /proc/net/tcp and tcp6 of Linux 6: two listeners, a connection seen from both its ends, one that is
# closing, and a dual-stack listener with an IPv4 client.
KERNEL = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:9347 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 785187 1 0 100 0 0 10 0
   5: 0100007F:C435 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 785182 1 0 100 0 0 10 0
  75: 0100007F:C435 0100007F:A59C 01 00000000:00000000 00:00000000 00000000     0        0 785184 1 0 20 0 0 10 -1
  79: 0100007F:A59C 0100007F:C435 01 00000000:00000000 00:00000000 00000000     0        0 785183 2 0 20 0 0 10 -1
  80: 0100007F:C44D 0100007F:B92C 06 00000000:00000000 03:0000164C 00000000     0        0 0 3 0
  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when
   0: 00000000000000000000000000000000:C357 00000000000000000000000000000000:0000 0A 00000000:00000001 00:0 0 0
   1: 0000000000000000FFFF00000100007F:C357 0000000000000000FFFF00000100007F:BB74 01 00000000:00000000 00:0 0 0
   2: 00000000000000000000000001000000:C358 00000000000000000000000000000000:0000 0A 00000000:00000001 00:0 0 0
"""

# From `ss -tan state listening state established` of iproute2 6.1; systemd-resolved and a link-local address as
# others have them.
SS = """\
State  Recv-Q Send-Q Local Address:Port  Peer Address:Port Process
LISTEN 0      128          0.0.0.0:2024       0.0.0.0:*
LISTEN 0      4096   127.0.0.53%lo:53         0.0.0.0:*
LISTEN 0      5                  *:8765             *:*
LISTEN 0      5              [::1]:8766          [::]:*    users:(("python3",pid=812,fd=3))
ESTAB  0      0              [::1]:41766        [::1]:8766
ESTAB  0      0      [::ffff:127.0.0.1]:8765  [::ffff:127.0.0.1]:55612
ESTAB  0      52     [fe80::1%eth0]:22      [fe80::2]:50000
"""

# From `lsof -nP -iTCP -FpcnT`.
LSOF = """\
p18539
cggml-rpc-server
f3
n10.10.0.21:50052
TST=LISTEN
TQR=0
TQS=0
f5
n10.10.0.21:50052->10.10.0.1:42396
TST=ESTABLISHED
TQR=0
TQS=0
p200
csshd
f4
n*:22
TST=LISTEN
TQR=0
f5
n[::1]:631
TST=LISTEN
f6
n[fd00::2]:22->[fd00::1]:50000
TST=ESTABLISHED
f7
n127.0.0.1:5000->127.0.0.1:6000
TST=CLOSE_WAIT
f8
n*:*
TST=CLOSED
"""


def is_mapped(address: IPv4Address | IPv6Address) -> bool:
    return isinstance(address, IPv6Address) and address.ipv4_mapped is not None


ports = st.integers(0, 65535)
addresses = st.ip_addresses().filter(lambda address: not is_mapped(address))


def kernel_row(state: str, here: tuple[object, int], there: tuple[object, int]) -> str:
    """A row as the kernel of a little-endian machine prints it."""
    (address, port), (peer, peer_port) = here, there
    return f"   0: {in_words(address)}:{port:04X} {in_words(peer)}:{peer_port:04X} {state} 00000000:00000000"


def in_words(address: object) -> str:
    assert isinstance(address, IPv4Address | IPv6Address)
    packed = address.packed
    return "".join(packed[start : start + 4][::-1].hex().upper() for start in range(0, len(packed), 4))


def test_the_kernels_table_gives_listeners_and_connections() -> None:
    assert parse_sockets(KERNEL) == (
        Socket("0.0.0.0", 37703),
        Socket("127.0.0.1", 50229),
        Socket("127.0.0.1", 50229, "127.0.0.1:42396"),
        Socket("127.0.0.1", 42396, "127.0.0.1:50229"),
        Socket("::", 50007),
        Socket("127.0.0.1", 50007, "127.0.0.1:47988"),
        Socket("::1", 50008),
    )


def test_ss_gives_listeners_and_connections() -> None:
    assert parse_sockets(SS) == (
        Socket("0.0.0.0", 2024),
        Socket("127.0.0.53", 53),
        Socket("::", 8765),
        Socket("::1", 8766),
        Socket("::1", 41766, "::1:8766"),
        Socket("127.0.0.1", 8765, "127.0.0.1:55612"),
        Socket("fe80::1", 22, "fe80::2:50000"),
    )


def test_lsof_gives_listeners_and_connections() -> None:
    assert parse_sockets(LSOF) == (
        Socket("10.10.0.21", 50052),
        Socket("10.10.0.21", 50052, "10.10.0.1:42396"),
        Socket("0.0.0.0", 22),
        Socket("::1", 631),
        Socket("fd00::2", 22, "fd00::1:50000"),
    )


def test_a_table_without_sockets_is_known_and_no_table_is_not() -> None:
    assert parse_sockets(KERNEL.splitlines()[0]) == ()
    assert parse_sockets(SS.splitlines()[0]) == ()
    assert parse_sockets("") is None
    assert parse_sockets("lsof: command not found\n") is None


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("10.0.0.1", "10.0.0.1", True),
        ("10.0.0.1", "10.0.0.2", False),
        ("10.0.0.1", "0.0.0.0", True),
        ("::", "10.0.0.1", True),
        ("::1", "0:0:0:0:0:0:0:1", True),
        ("localhost", "10.0.0.1", True),
        ("", "10.0.0.1", True),
    ],
)
def test_addresses_overlap_unless_they_are_known_to_differ(one: str, other: str, expected: bool) -> None:
    assert may_overlap(one, other) is expected
    assert may_overlap(other, one) is expected


def test_a_connection_has_a_peer_address_and_a_listener_has_none() -> None:
    assert Socket("10.0.0.2", 50052, "10.0.0.1:4000").peer_address == "10.0.0.1"
    assert not Socket("10.0.0.2", 50052, "10.0.0.1:4000").listens
    assert Socket("10.0.0.2", 50052).listens
    assert Socket("10.0.0.2", 50052).peer_address is None


@given(addresses, ports, addresses, ports)
def test_every_address_survives_the_kernels_spelling(
    here: object, port: int, there: object, peer_port: int
) -> None:
    rows = (
        kernel_row("0A", (here, port), (IPv4Address(0), 0)),
        kernel_row("01", (here, port), (there, peer_port)),
    )
    assert parse_sockets("\n".join(rows)) == (
        Socket(str(here), port),
        Socket(str(here), port, f"{there}:{peer_port}"),
    )


@given(st.ip_addresses(v=4), ports)
def test_a_mapped_address_is_the_ipv4_address_it_stands_for(address: object, port: int) -> None:
    row = kernel_row("0A", (IPv6Address(f"::ffff:{address}"), port), (IPv6Address(0), 0))
    assert parse_sockets(row) == (Socket(str(address), port),)


@given(addresses, ports, addresses, ports)
def test_every_address_survives_the_spelling_of_ss(
    here: IPv4Address | IPv6Address, port: int, there: IPv4Address | IPv6Address, peer_port: int
) -> None:
    one, other = (f"[{each}]" if each.version == 6 else str(each) for each in (here, there))
    rows = f"LISTEN 0 128 {one}:{port} *:*\nESTAB 0 0 {one}:{port} {other}:{peer_port} \n"
    assert parse_sockets(rows) == (Socket(str(here), port), Socket(str(here), port, f"{there}:{peer_port}"))


hostile = st.lists(
    st.one_of(
        st.text(max_size=40),
        st.from_regex(r" *[0-9]+: [0-9A-F]{1,40}:[0-9A-F]{4} [0-9A-F]{1,40}:[0-9A-F]{4} 0[1A] ", fullmatch=True),
        st.from_regex(
            r"(LISTEN|ESTAB) +[0-9]+ +[0-9]+ +\S{1,40}:[0-9]{1,6} +\S{1,40}:([0-9]{1,6}|\*)", fullmatch=True
        ),
        st.from_regex(r"n.{0,20}:\d{1,6}(->.{0,20}:\d{1,6})?", fullmatch=True),
        st.sampled_from(["TST=LISTEN", "TST=ESTABLISHED", "n*:*"]),
    )
)


@given(hostile)
def test_no_text_is_a_crash_or_an_empty_table(lines: list[str]) -> None:
    assert parse_sockets("\n".join(lines)) != ()
