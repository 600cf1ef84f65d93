"""What nodes say of themselves, read from recorded texts and from texts of the worst kind."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterctl.cluster.facts import parse_addresses, parse_facts
from clusterctl.cluster.observation import parse_observation
from clusterctl.errors import ClusterctlError
from clusterctl.model import Address, HostMemory, Listener, Role
from clusterctl.remote.answer import Section
from tests.unit.cluster_samples import SYSTEM, facts, kernel_listener, sections

IP = """\
1: lo    inet 127.0.0.1/8 scope host lo\\       valid_lft forever preferred_lft forever
2: enp4s0    inet 10.10.0.21/24 brd 10.10.0.255 scope global dynamic enp4s0\\       valid_lft 80000sec
2: enp4s0    inet 10.10.0.22/24 brd 10.10.0.255 scope global secondary enp4s0\\       valid_lft forever
5: wg0    inet 10.8.0.2 peer 10.8.0.1/32 scope global wg0\\       valid_lft forever preferred_lft forever
"""
LINUX_IFCONFIG = """\
enp4s0: flags=4163<UP,BROADCAST,RUNNING,MULTICAST>  mtu 1500
        inet 10.10.0.21  netmask 255.255.255.0  broadcast 10.10.0.255
        inet6 fe80::1  prefixlen 64  scopeid 0x20<link>
        ether 00:11:22:33:44:55  txqueuelen 1000  (Ethernet)

lo: flags=73<UP,LOOPBACK,RUNNING>  mtu 65536
        inet 127.0.0.1  netmask 255.0.0.0
"""
OLD_IFCONFIG = """\
eth0      Link encap:Ethernet  HWaddr 00:11:22:33:44:55
          inet addr:192.168.1.30  Bcast:192.168.1.255  Mask:255.255.255.0
"""
MACOS_IFCONFIG = """\
lo0: flags=8049<UP,LOOPBACK,RUNNING,MULTICAST> mtu 16384
\toptions=1203<RXCSUM,TXCSUM,TXSTATUS,SW_TIMESTAMP>
\tinet 127.0.0.1 netmask 0xff000000
\tinet6 ::1 prefixlen 128
en0: flags=8863<UP,BROADCAST,SMART,RUNNING,SIMPLEX,MULTICAST> mtu 1500
\tether 00:11:22:33:44:55
\tinet 192.168.1.40 netmask 0xffffff00 broadcast 192.168.1.255
utun4: flags=8051<UP,POINTOPOINT,RUNNING,MULTICAST> mtu 1420
\tinet 10.8.0.3 --> 10.8.0.1 netmask 0xffffffff
"""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            IP,
            [
                ("lo", "127.0.0.1", 8),
                ("enp4s0", "10.10.0.21", 24),
                ("enp4s0", "10.10.0.22", 24),
                ("wg0", "10.8.0.2", 32),
            ],
        ),
        (LINUX_IFCONFIG, [("enp4s0", "10.10.0.21", 24), ("lo", "127.0.0.1", 8)]),
        (OLD_IFCONFIG, [("eth0", "192.168.1.30", 24)]),
        (MACOS_IFCONFIG, [("lo0", "127.0.0.1", 8), ("en0", "192.168.1.40", 24), ("utun4", "10.8.0.3", 32)]),
        ("sh: ip: not found\nsh: ifconfig: not found\n", []),
        ("2: eth0    inet 999.1.1.1/24 scope global eth0\n", []),
        ("2: eth0    inet 10.0.0.1/99 scope global eth0\n", []),
    ],
)
def test_addresses_are_read_from_every_tool(text: str, found: list[tuple[str, str, int]]) -> None:
    assert parse_addresses(text) == tuple(Address(*row) for row in found)


def test_a_healthy_worker_is_understood() -> None:
    worker = facts("w1")
    system = worker.observation.system
    assert (system.os, system.arch, system.hostname, system.user) == ("linux", "x86_64", "w1", "ops")
    assert (system.home, system.path, system.clock_s) == ("/home/ops", "/usr/bin:/bin", 1_790_000_000)
    assert worker.memory == HostMemory(64000, 58593)
    assert worker.worker_program is not None
    assert worker.worker_program.path == "/opt/llama/ggml-rpc-server"
    assert worker.library_commits == {"3ce7da2"}
    assert worker.devices is not None
    assert [device.name for device in worker.devices] == ["CUDA0"]


def test_the_new_name_of_the_worker_wins_over_the_old_one() -> None:
    both = facts("w1", programs=("rpc-server", "ggml-rpc-server"))
    assert both.worker_program is not None
    assert both.worker_program.path.endswith("/ggml-rpc-server")
    assert len(both.worker_programs) == 2


def test_the_unified_program_is_called_with_a_command() -> None:
    assert facts("head", programs=("llama",)).head_program == ("/opt/llama/llama", "serve")
    assert facts("head", programs=("llama", "llama-server")).head_program == ("/opt/llama/llama-server",)
    assert facts("head", programs=()).head_program is None


def test_sizes_of_files_are_known_or_missing() -> None:
    head = facts("head", asked_files=("/m/a", "/m/b"), files="1000 1780000000 /m/a\nmissing /m/b\n")
    assert head.files == {"/m/a": 1000, "/m/b": None}


def test_holders_of_a_port_are_named_once() -> None:
    rows = "77 /usr/bin/python3\n77 /usr/bin/python3\n80 /opt/a program\n"
    seen = facts("w1", sockets=kernel_listener(50052), changes={"holders:50052": rows}).observation
    assert seen.holders[50052] == (
        Listener("", 50052, 77, "/usr/bin/python3"),
        Listener("", 50052, 80, "/opt/a program"),
    )
    assert [socket.address for socket in seen.listening(50052)] == ["0.0.0.0"]
    assert seen.listening(50053) == ()


@pytest.mark.parametrize(
    "system", ["", "FreeBSD bsd amd64\nops\nb\n1\n/h\n/p\n", "Linux\n", "MINGW64_NT-10.0 x y\n"]
)
def test_a_system_that_is_not_supported_is_named(system: str) -> None:
    with pytest.raises(ClusterctlError, match="w1: the operating system is not supported") as caught:
        facts("w1", changes={"system": system})
    assert "Linux or macOS" in str(caught.value.hint)


names = st.sampled_from(
    [*sections("w1", Role.WORKER), "holders:50052", "record:w1", "program:/x/llama", "activity:w1"]
)
lines = st.one_of(
    st.text(max_size=30),
    st.sampled_from([*SYSTEM.splitlines(), "² ²", "x y", "1 2 3", "-1", "9" * 5000, "{}", "[" * 100, "running"]),
)


@settings(max_examples=300)
@given(names, st.lists(lines, max_size=8).map("\n".join), st.sampled_from(list(Role)))
def test_no_text_of_a_node_is_a_crash(name: str, text: str, role: Role) -> None:
    hostile = sections("w1", role)
    hostile[name] = Section(0, text)
    with contextlib.suppress(ClusterctlError):
        assert parse_facts("w1", role, ("/m/a",), hostile).node == "w1"


def test_a_part_that_is_missing_is_the_nodes_fault() -> None:
    answer = sections("w1", Role.WORKER)
    del answer["sockets"]
    with pytest.raises(ClusterctlError, match="w1: the node's answer has no part `sockets`"):
        parse_observation("w1", answer)
