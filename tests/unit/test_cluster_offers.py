"""Which devices may take layers, and how much each may hold."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.cluster.facts import NodeFacts
from clusterctl.cluster.offers import DEFAULT_RESERVE_MIB, beside_host, offers_of
from clusterctl.errors import ClusterctlError
from clusterctl.model import MIB, Offer
from tests.unit.cluster_samples import CUDA, NODES, address_row, all_facts, facts, inventory, listing

FREE_MIB = 23210
CPU = "CPU: AMD Ryzen 9 (64000 MiB, 60000 MiB free)"


def node_text(name: str, settings: str) -> str:
    return NODES.replace(f"{{name: {name}, role: ", f"{{name: {name}, {settings}, role: ")


def offers(text: str = NODES, /, **of_node: NodeFacts) -> dict[str, Offer]:
    """All offers by label, in their order."""
    found = offers_of(inventory(text), all_facts(**of_node))
    return {offer.label: offer for offer in found}


def budget_mib(text: str, label: str = "w1/CUDA0", /, **of_node: NodeFacts) -> int:
    bytes_, rest = divmod(offers(text, **of_node)[label].budget_bytes, MIB)
    assert rest == 0
    return bytes_


def test_workers_come_in_the_order_of_the_inventory_and_the_head_last() -> None:
    found = offers()
    assert list(found) == ["w1/CUDA0", "w2/CUDA0", "head/CUDA0"]
    assert [offer.rpc_endpoint for offer in found.values()] == ["10.10.0.21:50052", "10.10.0.22:50052", None]
    assert [offer.is_local for offer in found.values()] == [False, False, True]


def test_a_budget_is_what_is_free_less_what_must_stay_free() -> None:
    assert budget_mib(NODES) == FREE_MIB - DEFAULT_RESERVE_MIB
    assert budget_mib(node_text("w1", "memory: {reserve_mib: 0}")) == FREE_MIB
    assert budget_mib(node_text("w1", "memory: {reserve_mib: 3000}")) == FREE_MIB - 3000
    assert budget_mib(node_text("w1", "memory: {reserve_mib: 90000}")) == 0


def test_the_steps_of_a_budget_end_in_the_budget() -> None:
    for offer in offers(node_text("w1", "memory: {limit_mib: 1000}")).values():
        assert offer.budget_steps[-1].left_bytes == offer.budget_bytes


def test_free_memory_beyond_the_total_is_not_believed() -> None:
    unified = facts("w1", devices=listing("CUDA0: GB10 (20000 MiB, 24000 MiB free)"))
    assert budget_mib(NODES, w1=unified) == 20000 - DEFAULT_RESERVE_MIB


def test_a_limit_is_an_upper_bound() -> None:
    assert budget_mib(node_text("w1", "memory: {limit_mib: 5000}")) == 5000
    assert budget_mib(node_text("w1", "memory: {limit_mib: 900000}")) == FREE_MIB - DEFAULT_RESERVE_MIB


def test_a_limit_holds_for_all_devices_of_a_node_together() -> None:
    two = facts("w1", devices=listing(CUDA, CUDA.replace("CUDA0", "CUDA1").replace("3090", "4090")))
    found = offers(node_text("w1", "memory: {limit_mib: 10000}"), w1=two)
    assert [found[f"w1/CUDA{number}"].budget_bytes for number in (0, 1)] == [5000 * MIB, 5000 * MIB]


def test_memory_that_is_not_told_stops_unless_a_limit_stands_for_it() -> None:
    silent = facts("w1", devices=listing("CUDA0: NVIDIA Thing (0 MiB, 0 MiB free)"))
    with pytest.raises(ClusterctlError, match="w1: CUDA0 does not tell its memory") as caught:
        offers(w1=silent)
    assert "memory.limit_mib" in str(caught.value.hint)
    assert budget_mib(node_text("w1", "memory: {limit_mib: 8000}"), w1=silent) == 8000


def test_nodes_on_one_machine_divide_its_memory() -> None:
    twins = {name: facts(name, boot="one-machine") for name in ("w1", "w2")}
    found = offers(**twins)
    half = (FREE_MIB - DEFAULT_RESERVE_MIB) * MIB // 2
    assert [found[f"{name}/CUDA0"].budget_bytes for name in ("w1", "w2")] == [half, half]
    assert found["head/CUDA0"].budget_bytes == 2 * half


def test_nodes_on_one_machine_that_see_different_cards_share_nothing() -> None:
    text = NODES.replace("{name: w1,", "{name: w1, env: {CUDA_VISIBLE_DEVICES: 0},").replace(
        "{name: w2,", "{name: w2, env: {CUDA_VISIBLE_DEVICES: 1},"
    )
    twins = {name: facts(name, boot="one-machine") for name in ("w1", "w2")}
    assert budget_mib(text, **twins) == FREE_MIB - DEFAULT_RESERVE_MIB


def test_a_head_that_only_serves_offers_nothing() -> None:
    text = NODES.replace("role: head}", "role: head, serve_only: true}")
    assert list(offers(text)) == ["w1/CUDA0", "w2/CUDA0"]


def test_a_head_keeps_its_cpu_out_and_a_worker_offers_it_only_alone() -> None:
    both, alone = listing(CPU, CUDA), listing(CPU)
    found = offers(w1=facts("w1", devices=both), w2=facts("w2", devices=alone), head=facts("head", devices=alone))
    assert list(found) == ["w1/CUDA0", "w2/CPU"]


def test_a_worker_offers_what_the_inventory_names_in_that_order() -> None:
    three = listing(*(CUDA.replace("CUDA0", f"CUDA{number}") for number in range(3)))
    found = offers(node_text("w1", "rpc: {devices: [CUDA2, CUDA0]}"), w1=facts("w1", devices=three))
    assert list(found)[:2] == ["w1/CUDA2", "w1/CUDA0"]


def test_an_address_that_is_missing_stops() -> None:
    with pytest.raises(ClusterctlError, match="w1: the node does not have an address in network"):
        offers(w1=facts("w1", addresses=address_row("192.168.1.1")))


@pytest.mark.parametrize(
    ("settings", "gb_s"),
    [
        ("speed: {bandwidth_gb_s: 936}", 936.0),
        ("speed: {bandwidth_gb_s: {CUDA1: 900}}", None),
        ("backend: cuda", None),
    ],
)
def test_a_speed_is_the_inventorys_or_unknown(settings: str, gb_s: float | None) -> None:
    assert offers(node_text("w1", settings))["w1/CUDA0"].bandwidth_gb_s == gb_s


@given(st.integers(0, 60_000), st.none() | st.integers(0, 90_000))
def test_the_heads_own_process_comes_off_the_memory_it_shares(host_mib: int, budget: int | None) -> None:
    known: Mapping[str, NodeFacts] = all_facts(w1=facts("w1", devices=listing(CPU), boot="boot-of-head"))
    before = offers_of(inventory(), known)
    host_budget_bytes = None if budget is None else budget * MIB
    after = beside_host(inventory(), known, before, host_mib * MIB, host_budget_bytes)
    assert [offer.label for offer in after] == [offer.label for offer in before]
    shared, *others = after
    assert others == list(before[1:])
    assert 0 <= shared.budget_bytes <= before[0].budget_bytes
    available = before[0].budget_bytes if host_budget_bytes is None else host_budget_bytes
    assert shared.budget_bytes <= max(0, available - host_mib * MIB)
