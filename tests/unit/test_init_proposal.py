"""From machines as found to an inventory that `check` passes."""

from __future__ import annotations

from ipaddress import IPv4Network

import pytest

from clusterctl.cluster.head_choice import HeadChoice, choose_head
from clusterctl.cluster.init import foresee_check
from clusterctl.cluster.proposal import propose
from clusterctl.cluster.survey import Site, named
from clusterctl.config.inventory import Inventory
from clusterctl.config.loading import parse_inventory
from clusterctl.config.writing import inventory_text
from clusterctl.model import Severity
from clusterctl.remote.target import Destination
from clusterctl.reports import CheckReport
from tests.unit.init_sites import CPU, ETHERNET, LLVMPIPE, RTX_3090, STRIX, THUNDERBOLT, WIFI, site


def written(sites: tuple[Site, ...], head: HeadChoice | None = None, network: str | None = None) -> Inventory:
    """The inventory that `init` writes for these sites, read back."""
    wanted = IPv4Network(network) if network else None
    proposal = propose("homelab", sites, head or choose_head(sites), wanted)
    return parse_inventory(inventory_text(proposal.draft), "homelab.yaml", {})


def foreseen(sites: tuple[Site, ...]) -> CheckReport:
    return foresee_check(written(sites), sites)


def test_a_homelab_gets_roles_backends_programs_and_a_network() -> None:
    sites = (
        site("desk", {"eth0": "10.0.0.1/24"}, cards=(RTX_3090,)),
        site("strix1", {"eth0": "10.0.0.2/24"}, cards=(STRIX,)),
        site("nas", {"eth0": "10.0.0.3/24"}),
    )
    inventory = written(sites)
    assert [(n.name, n.host, n.role.value, n.backend, n.serve_only) for n in inventory.nodes] == [
        ("desk", "desk", "head", "cuda", False),
        ("strix1", "strix1", "worker", "vulkan", False),
        ("nas", "nas", "worker", "cpu", False),
    ]
    assert str(inventory.network) == "10.0.0.0/24"
    assert {node.llama.bin_dir for node in inventory.nodes} == {"/opt/llama.cpp/bin"}
    report = foreseen(sites)
    assert report.ok
    assert [node.rpc_address for node in report.nodes] == [None, "10.0.0.2", "10.0.0.3"]


def test_the_comments_say_why() -> None:
    sites = (site("desk", cards=(RTX_3090,)), site("nas"))
    proposal = propose("homelab", sites, choose_head(sites), None)
    text = inventory_text(proposal.draft)
    assert "# desk is the head: it has the fastest device (CUDA0, NVIDIA GeForce RTX 3090, 936 GB/s)" in text
    assert "# network 10.0.0.0/24 (1 Gbit/s Ethernet): the only one that all nodes share" in text
    assert "# linux on x86_64; CUDA0: NVIDIA GeForce RTX 3090, 24 GiB" in text
    assert "# linux on x86_64; CPU: AMD EPYC, 24 GiB" in text


def test_a_head_without_an_accelerator_only_serves() -> None:
    sites = (site("desk", models={"/models/m.gguf": 1}), site("strix", cards=(STRIX,)))
    inventory = written(sites)
    assert (inventory.head.name, inventory.head.serve_only, inventory.head.backend) == ("desk", True, None)
    assert foreseen(sites).ok


def test_a_single_machine_shares_out_its_own_devices_without_a_network() -> None:
    inventory = written((site("desk", cards=(RTX_3090,)),))
    assert (inventory.network, inventory.head.serve_only, inventory.workers) == (None, False, ())


def test_a_machine_with_two_vendors_names_no_backend() -> None:
    sites = (site("both", cards=(RTX_3090, STRIX)), site("nas"))
    assert written(sites).node("both").backend is None
    assert foreseen(sites).ok


def test_a_graphics_driver_in_software_is_the_cpu() -> None:
    sites = (site("desk", cards=(RTX_3090,)), site("soft", cards=(LLVMPIPE,)))
    assert written(sites).node("soft").backend == "cpu"


def test_programs_in_the_home_are_named_from_the_home() -> None:
    home = "/home/ops/llama.cpp/build/bin"
    sites = (
        site("desk", server=f"{home}/llama-server", worker=f"{home}/ggml-rpc-server"),
        site("nas", server="/usr/bin/llama-server", worker="/srv/rpc/ggml-rpc-server"),
    )
    inventory = written(sites)
    assert [node.llama.bin_dir for node in inventory.nodes] == ["~/llama.cpp/build/bin", "/srv/rpc"]


def test_a_machine_without_programs_is_written_down_and_found_fault_with() -> None:
    sites = (site("desk", cards=(RTX_3090,)), site("bare", server=None, worker=None))
    report = foreseen(sites)
    assert not report.ok
    assert [p.code for p in report.nodes[1].problems if p.severity is Severity.ERROR] == ["program-missing"]
    assert written(sites).node("bare").backend is None


def test_builds_that_differ_are_written_down_and_told() -> None:
    sites = (site("desk", cards=(RTX_3090,)), site("old", commit="571d0d5"))
    report = foreseen(sites)
    assert (report.ok, report.skew.status) == (False, "mismatch")
    assert "571d0d5" in report.skew.evidence[0].reason


def test_a_worker_on_wifi_and_cable_listens_on_the_cable() -> None:
    sites = (
        site("desk", {"eth0": "10.0.0.1/24"}, cards=(RTX_3090,)),
        site("lap", {"wlan0": "10.0.0.2/24", "eth0": "10.0.0.3/24"}, links={"wlan0": WIFI, "eth0": ETHERNET}),
    )
    assert foreseen(sites).nodes[1].rpc_address == "10.0.0.3"


def test_a_star_of_cables_needs_no_common_network() -> None:
    sites = (
        site("hub", {"a": "10.0.1.1/30", "b": "10.0.2.1/30"}, cards=(RTX_3090,)),
        site("left", {"a": "10.0.1.2/30"}, links={"a": THUNDERBOLT}),
        site("right", {"b": "10.0.2.2/30"}, links={"b": THUNDERBOLT}),
    )
    report = foreseen(sites)
    assert report.ok
    assert [node.rpc_address for node in report.nodes] == [None, "10.0.1.2", "10.0.2.2"]


def test_user_port_and_local_connection_are_kept() -> None:
    here = site("vm")
    sites = (
        site("desk", destination=Destination("desk.lan", user="root", port=2222)),
        Site("vm", None, here.as_head, here.as_worker, {}, None),
    )
    inventory = written(sites, HeadChoice("vm", "you chose it"))
    assert (inventory.node("desk").ssh.user, inventory.node("desk").ssh.port) == ("root", 2222)
    assert (inventory.head.connection, inventory.head.role.value) == ("local", "head")


def test_a_head_whose_devices_can_not_be_listed_is_not_said_to_have_none() -> None:
    broken = site("desk", cards=(CPU,))
    without_listing = Site(
        "desk", broken.destination, site("desk", server=None).as_head, broken.as_worker, {}, None
    )
    inventory = written((without_listing, site("nas")), HeadChoice("desk", "you chose it"))
    assert inventory.head.serve_only is False
    assert not foresee_check(inventory, (without_listing, site("nas"))).ok


@pytest.mark.parametrize(
    ("host", "hostname", "expected"),
    [
        ("strix1.lan", "whatever", "strix1"),
        ("Strix_1", "whatever", "strix-1"),
        ("192.168.1.30", "RTX.local", "rtx"),
        ("fe80::1", "rtx", "rtx"),
        ("10.0.0.1", "(none)", "none"),
        ("日本", "x", "node"),
        ("x" * 100, "x", "x" * 63),
    ],
)
def test_a_node_is_called_as_its_alias_or_else_as_itself(host: str, hostname: str, expected: str) -> None:
    (found,) = named((site("any", destination=Destination(host), hostname=hostname),))
    assert found.name == expected


def test_names_are_given_once() -> None:
    sites = tuple(site("any", destination=Destination(f"rtx.{domain}")) for domain in ("lan", "home", "lab"))
    assert [each.name for each in named(sites)] == ["rtx", "rtx-2", "rtx-3"]
