"""Kind and speed of network interfaces, from what Linux and macOS say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.cluster.facts import parse_addresses
from clusterctl.cluster.interfaces import Interface, Kind, parse_interfaces
from clusterctl.model import Address

MACOS = """\

Hardware Port: Ethernet
Device: en0
Ethernet Address: 00:00:5e:00:53:01

Hardware Port: Wi-Fi
Device: en1
Ethernet Address: 00:00:5e:00:53:02

Hardware Port: Thunderbolt 1
Device: en2
Ethernet Address: 00:00:5e:00:53:03

Hardware Port: Thunderbolt Bridge
Device: bridge0
Ethernet Address: 00:00:5e:00:53:03

Hardware Port: Thunderbolt Ethernet Slot 2
Device: en9
Ethernet Address: 00:00:5e:00:53:04

Hardware Port: iPhone USB
Device: en7
Ethernet Address: N/A

VLAN Configurations
===================
lo0: flags=8049<UP,LOOPBACK,RUNNING,MULTICAST> mtu 16384
\tinet 127.0.0.1 netmask 0xff000000
en0: flags=8863<UP,BROADCAST,SMART,RUNNING,SIMPLEX,MULTICAST> mtu 1500
\tether 00:00:5e:00:53:01
\tinet 192.168.1.20 netmask 0xffffff00 broadcast 192.168.1.255
\tmedia: autoselect (10Gbase-T <full-duplex,flow-control>)
\tstatus: active
en1: flags=8863<UP,BROADCAST,SMART,RUNNING,SIMPLEX,MULTICAST> mtu 1500
\tinet 192.168.1.21 netmask 0xffffff00 broadcast 192.168.1.255
\tmedia: autoselect
\tstatus: active
en2: flags=8963<UP,BROADCAST,SMART,RUNNING,PROMISC,SIMPLEX,MULTICAST> mtu 1500
\tmedia: autoselect <full-duplex>
\tstatus: inactive
en7: flags=8863<UP,BROADCAST,SMART,RUNNING,SIMPLEX,MULTICAST> mtu 1500
\tstatus: active
en9: flags=8863<UP,BROADCAST,SMART,RUNNING,SIMPLEX,MULTICAST> mtu 1500
\tmedia: autoselect (1000baseT <full-duplex>)
\tstatus: active
bridge0: flags=8863<UP,BROADCAST,SMART,RUNNING,SIMPLEX,MULTICAST> mtu 1500
\tinet 10.0.5.1 netmask 0xffffff00 broadcast 10.0.5.255
\tstatus: active
bridge100: flags=8a63<UP,BROADCAST,SMART,RUNNING,ALLMULTI,SIMPLEX,MULTICAST> mtu 1500
\tinet 192.168.64.1 netmask 0xffffff00 broadcast 192.168.64.255
\tstatus: active
utun4: flags=8051<UP,POINTOPOINT,RUNNING,MULTICAST> mtu 1280
\tinet 100.101.102.103 --> 100.101.102.103 netmask 0xffffffff
"""


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("lo unknown 772 - - - -", Interface("lo", Kind.LOOPBACK)),
        ("eth0 up 1 2500 r8169 - -", Interface("eth0", Kind.ETHERNET, 2500, True)),
        ("eth0 up 1 -1 virtio_net - -", Interface("eth0", Kind.ETHERNET, None, True)),
        ("eth1 down 1 -1 e1000e - -", Interface("eth1", Kind.ETHERNET, None, False)),
        ("wlan0 up 1 -1 iwlwifi wlan -", Interface("wlan0", Kind.WIFI, None, True)),
        ("ib0 up 32 40000 mlx4_core - -", Interface("ib0", Kind.INFINIBAND, 40000, True)),
        ("thunderbolt0 unknown 1 - thunderbolt-net - -", Interface("thunderbolt0", Kind.THUNDERBOLT)),
        ("wg0 unknown 65534 - - wireguard -", Interface("wg0", Kind.TUNNEL)),
        ("tailscale0 unknown 65534 -1 - tun -", Interface("tailscale0", Kind.TUNNEL)),
        ("ztabcdefgh unknown 1 10 - tun -", Interface("ztabcdefgh", Kind.TUNNEL)),
        ("flannel.1 unknown 1 - - vxlan -", Interface("flannel.1", Kind.TUNNEL)),
        ("eth0 up 1 10000 - - -", Interface("eth0", Kind.VIRTUAL, None, True)),
        ("docker0 down 1 -1 - bridge -", Interface("docker0", Kind.BRIDGE, None, False)),
    ],
)
def test_linux_tells_the_kind_of_each_interface(row: str, expected: Interface) -> None:
    assert parse_interfaces(row) == {expected.name: expected}


def test_a_bridge_is_what_its_cable_is_and_one_without_a_cable_stays_on_the_host() -> None:
    found = parse_interfaces(
        "vmbr0 up 1 10000 - bridge eno1,tap0\n"
        "virbr0 up 1 10000 - bridge veth1\n"
        "eno1 up 1 1000 igb - -\n"
        "tap0 up 1 10 - tun -\n"
        "veth1 up 1 10000 - - -\n"
    )
    assert found["vmbr0"] == Interface("vmbr0", Kind.ETHERNET, 1000, True)
    assert found["virbr0"] == Interface("virbr0", Kind.BRIDGE, None, True)


def test_what_is_stacked_on_a_bond_is_as_its_cables() -> None:
    found = parse_interfaces(
        "bond0 up 1 2000 - bond eno1,eno2\nvlan7 up 1 2000 - vlan bond0\nbr7 up 1 - - bridge vlan7\n"
        "eno1 up 1 1000 igb - -\neno2 up 1 1000 igb - -\n"
    )
    assert {name: (found[name].kind, found[name].mbit_s) for name in ("bond0", "vlan7", "br7")} == {
        "bond0": (Kind.ETHERNET, 2000),
        "vlan7": (Kind.ETHERNET, 2000),
        "br7": (Kind.ETHERNET, 1000),
    }


def test_a_bridge_over_wifi_is_wifi() -> None:
    found = parse_interfaces("br0 up 1 - - bridge wlan0\nwlan0 up 1 - ath10k wlan -\n")
    assert found["br0"].kind is Kind.WIFI


def test_interfaces_that_stand_on_each_other_end_somewhere() -> None:
    many = ",".join(["a", "b"] * 1000)
    found = parse_interfaces(f"a up 1 {'9' * 5000} - vlan {many}\nb up 1 - - vlan {many}\n")
    assert found["a"] == Interface("a", Kind.VIRTUAL, None, True)


def test_macos_tells_it_by_hardware_port_and_media() -> None:
    found = parse_interfaces(MACOS)
    assert found == {
        "lo0": Interface("lo0", Kind.LOOPBACK),
        "en0": Interface("en0", Kind.ETHERNET, 10000, True),
        "en1": Interface("en1", Kind.WIFI, None, True),
        "en2": Interface("en2", Kind.THUNDERBOLT, None, False),
        "en7": Interface("en7", Kind.UNKNOWN, None, True),
        "en9": Interface("en9", Kind.ETHERNET, 1000, True),
        "bridge0": Interface("bridge0", Kind.THUNDERBOLT, None, True),
        "bridge100": Interface("bridge100", Kind.BRIDGE, None, True),
        "utun4": Interface("utun4", Kind.TUNNEL),
    }


def test_the_addresses_of_macos_have_their_prefix() -> None:
    assert parse_addresses(MACOS)[1:4] == (
        Address("en0", "192.168.1.20", 24),
        Address("en1", "192.168.1.21", 24),
        Address("bridge0", "10.0.5.1", 24),
    )


@given(
    st.text() | st.lists(st.sampled_from(["a", "1", "-", "up", "bridge", "inet", "/", "9.9.9.9.9"])).map(" ".join)
)
def test_no_text_is_too_strange(text: str) -> None:
    for found in (parse_interfaces(text), parse_interfaces(f"eth0 {text}\n{MACOS}")):
        assert all(name == interface.name for name, interface in found.items())


@given(st.text("0123456789./x", max_size=30))
def test_what_is_no_address_is_passed_over(text: str) -> None:
    for line in (f"2: eth0    inet {text}/24 scope global", f"en0: flags=1\n\tinet {text} netmask 255.255.255.0"):
        assert all(0 <= address.prefix_length <= 32 for address in parse_addresses(line))
