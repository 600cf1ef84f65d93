"""Which network carries the RPC traffic, and the reasons that are given."""

from __future__ import annotations

from ipaddress import IPv4Network

import pytest

from clusterctl.cluster.network_choice import NetworkChoice, choose_network
from clusterctl.cluster.networks import Attachments, attachments_of, networks_left_out, shared_networks
from clusterctl.errors import UsageError
from tests.unit.init_sites import DOCKER, ETHERNET, FAST_ETHERNET, THUNDERBOLT, WIFI, WIREGUARD, site


def lab(nodes: dict[str, dict[str, tuple[str, str]]], ssh: str | None = None) -> Attachments:
    """Attachments of nodes given as interface → (link, address)."""
    sites = [
        site(
            name,
            {interface: address for interface, (_, address) in own.items()},
            links={interface: link for interface, (link, _) in own.items()},
        )
        for name, own in nodes.items()
    ]
    return {each.name: attachments_of(each.as_head.addresses, each.as_head.interfaces, ssh) for each in sites}


def order(nodes: Attachments) -> list[str]:
    return [str(shared.network) for shared in shared_networks(nodes)]


def test_wired_networks_come_first_by_speed_then_tunnels_then_wifi() -> None:
    links = {
        "10.0.1.0": WIFI,
        "10.0.2.0": WIREGUARD,
        "10.0.3.0": "up 1 10000 - - -",
        "10.0.4.0": ETHERNET,
        "10.0.5.0": FAST_ETHERNET,
        "10.0.6.0": "up 1 40000 mlx5_core - -",
        "10.0.7.0": THUNDERBOLT,
        "10.0.8.0": "up 1 -1 virtio_net - -",
    }
    nodes = lab(
        {
            name: {
                f"if{at}": (link, f"{network[:-1]}{host}/24") for at, (network, link) in enumerate(links.items())
            }
            for host, name in enumerate(("a", "b"), 1)
        }
    )
    assert [network[5] for network in order(nodes)] == list("65748321")


def test_the_slowest_node_decides() -> None:
    nodes = lab(
        {
            "a": {"fast": (FAST_ETHERNET, "10.0.1.1/24"), "eth": (ETHERNET, "10.0.2.1/24")},
            "b": {"fast": (WIFI, "10.0.1.2/24"), "eth": (ETHERNET, "10.0.2.2/24")},
        }
    )
    assert order(nodes) == ["10.0.2.0/24", "10.0.1.0/24"]
    assert shared_networks(nodes)[1].link == "Wi-Fi"


def test_of_equals_the_one_without_ssh_comes_first() -> None:
    nodes = lab(
        {
            name: {"x": (ETHERNET, f"10.0.1.{at}/24"), "y": (ETHERNET, f"10.0.2.{at}/24")}
            for at, name in enumerate("ab", 1)
        },
        ssh="10.0.1.1",
    )
    assert order(nodes) == ["10.0.2.0/24", "10.0.1.0/24"]
    choice = choose_network(nodes, "a", None)
    assert choice.reasons == (
        "network 10.0.2.0/24 (1 Gbit/s Ethernet): the fastest that all nodes share",
        "10.0.1.0/24 (1 Gbit/s Ethernet) is shared too, as fast, but SSH comes by it; --network chooses it",
    )


def test_link_local_cables_come_after_everything_else() -> None:
    nodes = lab(
        {
            name: {"tb": (THUNDERBOLT, f"169.254.7.{at}/16"), "wlan0": (WIFI, f"192.168.1.{at}/24")}
            for at, name in enumerate("ab", 1)
        }
    )
    assert order(nodes) == ["192.168.1.0/24", "169.254.0.0/16"]


def test_single_addresses_of_tailscale_are_one_network() -> None:
    nodes = lab(
        {
            "a": {"tailscale0": ("unknown 65534 -1 - tun -", "100.64.3.1/32")},
            "b": {"tailscale0": ("unknown 65534 -1 - tun -", "100.120.0.9/32")},
        }
    )
    assert order(nodes) == ["100.64.0.0/10"]
    assert shared_networks(nodes)[0].link == "tunnel"


def test_what_can_not_carry_rpc_is_left_out_with_the_reason() -> None:
    nodes = lab(
        {
            name: {
                "lo": ("unknown 772 - - - -", "127.0.0.1/8"),
                "docker0": (DOCKER, "172.17.0.1/16"),
                "public": (ETHERNET, f"203.0.113.{at}/24"),
                "old": ("down 1 -1 e1000e - -", f"10.0.9.{at}/24"),
                "wg0": (WIREGUARD, f"10.8.0.{at}/32"),
                "same": (ETHERNET, "192.168.100.1/24"),
                **({"usb4": (THUNDERBOLT, f"10.0.7.{at}/24")} if name != "c" else {}),
            }
            for at, name in enumerate("abc", 1)
        }
    )
    assert order(nodes) == []
    assert {str(left.network): left.reason for left in networks_left_out(nodes)} == {
        "10.0.7.0/24": "no address in it on c",
        "10.0.9.0/24": "its link is down",
        "10.8.0.1/32": "no address in it on b, c",
        "10.8.0.2/32": "no address in it on a, c",
        "10.8.0.3/32": "no address in it on a, b",
        "172.17.0.0/16": "it leads to containers or virtual machines of one host",
        "192.168.100.0/24": "a and b and c have the same address in it, so it is more than one network",
        "203.0.113.0/24": "it is public, and RPC has no password",
    }


def test_networks_with_one_reason_share_a_line() -> None:
    nodes = lab(
        {
            name: {
                "eth0": (ETHERNET, f"10.0.0.{at}/24"),
                "docker0": (DOCKER, "172.17.0.1/16"),
                "br-1": (DOCKER, "172.18.0.1/16"),
            }
            for at, name in enumerate("ab", 1)
        }
    )
    assert choose_network(nodes, "a", None).reasons == (
        "network 10.0.0.0/24 (1 Gbit/s Ethernet): the only one that all nodes share",
        "left out: 172.17.0.0/16, 172.18.0.0/16: it leads to containers or virtual machines of one host",
    )


def test_a_worker_with_two_addresses_in_the_network_listens_on_the_faster() -> None:
    nodes = lab(
        {
            "a": {"eth0": (ETHERNET, "10.0.0.1/24")},
            "b": {"wlan0": (WIFI, "10.0.0.2/24"), "eth0": (ETHERNET, "10.0.0.3/24")},
        }
    )
    choice = choose_network(nodes, "a", None)
    assert (choice.network, choice.addresses) == (IPv4Network("10.0.0.0/24"), {"b": "10.0.0.3"})
    assert choose_network(nodes, "b", None).addresses == {}


def test_a_faster_cable_between_two_nodes_is_pointed_out() -> None:
    nodes = lab(
        {
            "head": {"eth0": (ETHERNET, "10.0.0.1/24"), "usb4": (THUNDERBOLT, "10.0.7.1/30")},
            "near": {"eth0": (ETHERNET, "10.0.0.2/24"), "usb4": (THUNDERBOLT, "10.0.7.2/30")},
            "far": {"eth0": (ETHERNET, "10.0.0.3/24")},
        }
    )
    choice = choose_network(nodes, "head", None)
    assert choice.network == IPv4Network("10.0.0.0/24")
    assert (
        "near and head also share 10.0.7.0/30 (Thunderbolt of unknown rate);"
        " `rpc: {address: 10.0.7.2}` of near uses it"
    ) in choice.reasons


def test_without_a_common_network_every_worker_listens_on_its_cable_to_the_head() -> None:
    star = lab(
        {
            "head": {"a": (THUNDERBOLT, "10.0.1.1/30"), "b": (THUNDERBOLT, "10.0.2.1/30")},
            "left": {"a": (THUNDERBOLT, "10.0.1.2/30")},
            "right": {"b": (THUNDERBOLT, "10.0.2.2/30")},
        }
    )
    choice = choose_network(star, "head", None)
    assert (choice.network, choice.addresses) == (None, {"left": "10.0.1.2", "right": "10.0.2.2"})
    assert choice.reasons[0] == "no network is common to all nodes"
    with pytest.raises(UsageError, match="no private network leads from left to right") as refusal:
        choose_network(star, "left", None)
    assert "right is on 10.0.2.0/30" in str(refusal.value.hint)


def test_one_node_needs_no_network() -> None:
    assert choose_network(lab({"a": {}}), "a", None) == NetworkChoice()


def test_the_network_the_user_wants_is_taken_even_if_it_is_slow_or_wider() -> None:
    nodes = lab(
        {
            "a": {"eth0": (FAST_ETHERNET, "10.0.0.1/24"), "wlan0": (WIFI, "192.168.1.1/24")},
            "b": {"eth0": (FAST_ETHERNET, "10.0.0.2/24"), "wlan0": (WIFI, "192.168.2.1/24")},
        }
    )
    choice = choose_network(nodes, "a", IPv4Network("192.168.0.0/16"))
    assert choice.network == IPv4Network("192.168.0.0/16")
    assert choice.reasons[0] == "network 192.168.0.0/16 (Wi-Fi): you chose it"


def test_a_wanted_network_that_a_node_is_not_on_is_refused() -> None:
    nodes = lab({"a": {"eth0": (ETHERNET, "10.0.0.1/24")}, "b": {"eth0": (ETHERNET, "10.0.1.1/24")}})
    with pytest.raises(
        UsageError, match=r"10.0.0.0/24 can't carry the RPC traffic: no address in it on b"
    ) as refusal:
        choose_network(nodes, "a", IPv4Network("10.0.0.0/24"))
    assert "b is on 10.0.1.0/24" in str(refusal.value.hint)
