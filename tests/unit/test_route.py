"""Which interfaces the RPC traffic takes, and what is warned of them. What is not known is not spoken of."""

from __future__ import annotations

import pytest

from clusterctl.cluster.facts import NodeFacts
from clusterctl.cluster.interfaces import Interface, Kind
from clusterctl.cluster.link import UNMEASURED, Link
from clusterctl.cluster.route import End, end_problems, ends_of
from clusterctl.cluster.ways import Ways
from clusterctl.model import Problem, Severity
from tests.unit.cluster_samples import ADDRESSES, address_row, facts

WIFI = "wlan0 up 1 -1 iwlwifi wlan -\n"
WIRED = "eth0 up 1 1000 e1000e - -\n"
W1 = ADDRESSES["w1"]


def node(name: str, addresses: str = "", interfaces: str = WIRED) -> NodeFacts:
    """A node with these interfaces; on eth0 it has its usual address unless it is given others."""
    rows = addresses or address_row(ADDRESSES[name])
    return facts(name, addresses=rows, changes={"interfaces": interfaces})


def ends(head: NodeFacts, worker: NodeFacts) -> list[str]:
    return [f"{end.node} {end.interface.name}" for end in ends_of(head, worker, W1)]


def problems(head: NodeFacts, worker: NodeFacts, link: Link = UNMEASURED) -> dict[str, Problem]:
    return {problem.code: problem for problem in end_problems(ends_of(head, worker, W1), link)}


def test_both_sides_are_found_by_the_workers_address() -> None:
    assert ends(node("head"), node("w1")) == ["head eth0", "w1 eth0"]


def test_the_head_takes_the_smallest_network_that_holds_the_address() -> None:
    wide = address_row("10.10.0.1").replace("/24", "/16").replace("eth0", "eth1")
    rows = address_row("10.10.0.1") + wide
    assert ends(node("head", rows, f"eth1 up 1 100 r8169 - -\n{WIRED}"), node("w1")) == ["head eth0", "w1 eth0"]


@pytest.mark.parametrize(
    "rows",
    [
        address_row("192.168.7.1"),  # a router is between
        address_row("10.10.0.1") + address_row("10.10.0.2", "wlan0"),  # two ways, and no word which
        address_row("10.10.0.1", "nobody-knows"),
    ],
)
def test_a_side_that_is_not_known_is_left_out(rows: str) -> None:
    assert ends(node("head", rows, WIRED + WIFI), node("w1")) == ["w1 eth0"]


def test_what_stays_on_one_machine_takes_no_interface() -> None:
    here = address_row(W1, "wlan0")
    assert ends(node("head", here, WIFI), node("w1", here, WIFI)) == []


@pytest.mark.parametrize("side", ["head", "w1"])
def test_wifi_on_either_side_is_a_warning_with_what_was_measured(side: str) -> None:
    wireless = node(side, address_row(ADDRESSES[side], "wlan0"), WIFI)
    head, worker = (wireless, node("w1")) if side == "head" else (node("head"), wireless)
    problem = problems(head, worker, Link(True, 4.26, 211.7))["wifi-link"]
    assert problem.severity is Severity.WARNING
    assert problem.message.startswith(f"wlan0 of {side} is Wi-Fi (212 Mbit/s and 4.3 ms just now); ")
    assert "Mbit/s" not in problems(head, worker)["wifi-link"].message


@pytest.mark.parametrize(("mbit_s", "minutes"), [(10, 133), (100, 13)])
def test_a_slow_cable_is_a_warning_that_says_what_loading_costs(mbit_s: int, minutes: int) -> None:
    problem = problems(node("head"), node("w1", interfaces=f"eth0 up 1 {mbit_s} r8169 - -\n"))["narrow-link"]
    assert problem.severity is Severity.WARNING
    assert problem.message.startswith(f"eth0 of w1 runs at {mbit_s} Mbit/s; 10 GB take {minutes} min to load")


@pytest.mark.parametrize("row", ["eth0 up 1 -1 virtio_net - -", "eth0 up 1 10000 - - -", "eth0 up 1 1000 igb - -"])
def test_neither_an_unknown_rate_nor_a_fast_one_is_warned_of(row: str) -> None:
    assert problems(node("head"), node("w1", interfaces=f"{row}\n")) == {}


def test_a_running_worker_is_warned_of_too_though_its_link_is_not_measured() -> None:
    ways = Ways(ends={"w1": (End("w1", Interface("wlan0", Kind.WIFI)),)})
    assert [problem.code for problem in ways.problems("w1")] == ["wifi-link"]
    assert list(ways.problems("w2")) == []
