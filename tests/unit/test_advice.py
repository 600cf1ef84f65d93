"""Advice: each code where it belongs, and silence where it does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from clusterctl.llama.model_header import ModelHeader
from clusterctl.model import MIB, UNKNOWN_LINK, Estimate, Link, Offer, Workload
from clusterctl.planning.advice import advise
from clusterctl.planning.estimate import estimate
from clusterctl.planning.memory import MemoryModel
from clusterctl.planning.split import Strategy, choose_split
from tests.unit.memory_truth import model_header
from tests.unit.synthetic import GIB, even_header, header, layer, offer

SHORT = Workload(context=4096)


def advice(
    model: ModelHeader,
    offers: Sequence[Offer],
    workload: Workload = SHORT,
    *,
    strategy: Strategy = "memory",
    load_mode: str = "dio",
    has_draft: bool = False,
) -> dict[str, str]:
    memory = MemoryModel(model, workload)
    split = choose_split(memory, offers, strategy)
    found = advise(
        memory,
        split,
        offers,
        estimate(memory, split),
        load_mode=load_mode,
        has_draft=has_draft,
    )
    codes = [item.code for item in found]
    assert len(codes) == len(set(codes))
    return {item.code: item.message for item in found}


def two_nodes(first_gib: int, second_gib: int, link: Link = UNKNOWN_LINK) -> list[Offer]:
    """A worker and a head of the same good speed."""
    worker = offer("worker", first_gib * GIB, gb_s=900, link=link)
    return [worker, offer("head", second_gib * GIB, gb_s=900, is_local=True)]


def test_a_good_plan_on_one_device_needs_no_advice() -> None:
    assert advice(even_header(), [offer("head", 24 * GIB, gb_s=900, is_local=True)]) == {}


def test_a_model_that_one_node_holds_need_not_be_split() -> None:
    found = advice(even_header(layer_mib=100), two_nodes(10, 10))
    assert found.keys() == {"fits-on-one-node"}
    assert found["fits-on-one-node"].startswith("head alone can hold the model")


def test_a_faster_split_is_named_where_one_node_is_not_enough() -> None:
    offers = [offer("slow", 12 * GIB, gb_s=100), offer("head", 12 * GIB, gb_s=1000, is_local=True)]
    found = advice(even_header(), offers)
    assert "strategy: speed" in found["faster-split"]
    assert "faster-split" not in advice(even_header(), offers, strategy="speed")


def test_a_plan_on_one_slow_node_is_not_told_to_leave_others_out() -> None:
    memory = MemoryModel(even_header(), SHORT)
    offers = [offer("slow", 20 * GIB, gb_s=100), offer("head", 20 * GIB, gb_s=1000, is_local=True)]
    split = choose_split(memory, offers, "manual", layers={"slow": 32})
    codes = [item.code for item in advise(memory, split, offers, estimate(memory, split))]
    assert "faster-split" in codes
    assert "fits-on-one-node" not in codes


def test_a_smaller_cache_that_spares_the_network_is_named() -> None:
    workload = Workload(context=65536)
    found = advice(even_header(layer_mib=100), two_nodes(9, 9), workload)
    assert "kv_cache: {k: q8_0, v: q8_0}" in found["q8-cache"]
    assert "smaller-context" not in found


def test_a_cache_whose_rows_are_no_whole_blocks_is_left_as_it_is() -> None:
    model = header([layer(100 * MIB, kv_width=1000)] * 32)
    assert "q8-cache" not in advice(model, two_nodes(9, 9), Workload(context=65536))


def test_a_shorter_context_that_spares_the_network_is_named() -> None:
    workload = Workload(context=65536, kv_type_k="q8_0", kv_type_v="q8_0")
    found = advice(even_header(layer_mib=100), two_nodes(8, 8), workload)
    assert "alone can hold the model" in found["smaller-context"]


def test_a_context_far_shorter_than_asked_for_is_no_advice() -> None:
    workload = Workload(context=65536, kv_type_k="q8_0", kv_type_v="q8_0")
    assert "smaller-context" not in advice(even_header(layer_mib=200), two_nodes(8, 8), workload)


def test_layers_on_the_cpu_are_told_their_price() -> None:
    workload = replace(SHORT, cpu_layers=4)
    found = advice(even_header(), [offer("head", 24 * GIB, gb_s=900, is_local=True)], workload)
    assert found["cpu-layers"].startswith("the 4 layers on the head's CPU take ")


@pytest.mark.parametrize(
    ("description", "load_mode", "is_local", "expected"),
    [
        ("Apple M2 Ultra", "auto", True, True),
        ("Radeon 8060S Graphics (RADV GFX1151)", "mmap", True, True),
        ("Apple M2 Ultra", "dio", True, False),
        ("Apple M2 Ultra", "auto", False, False),
        ("NVIDIA GeForce RTX 3090", "auto", True, False),
    ],
)
def test_mapping_on_a_head_with_one_memory_is_warned_of(
    description: str, load_mode: str, is_local: bool, expected: bool
) -> None:
    own = offer("a", 24 * GIB, description=description, is_local=is_local)
    assert ("load-mode" in advice(even_header(), [own], load_mode=load_mode)) is expected


def test_hops_that_take_much_of_a_token_are_named() -> None:
    offers = [offer(name, 3 * GIB, gb_s=900) for name in "abcd"]
    assert "4 remote devices" in advice(even_header(layer_mib=150), offers)["network-bound"]


def test_a_network_that_is_slow_to_load_over_is_named() -> None:
    assert "about 1 min" in advice(even_header(), two_nodes(12, 12, Link(0.9)))["slow-link"]
    assert "slow-link" not in advice(even_header(), two_nodes(12, 12, Link(10)))
    assert "slow-link" not in advice(even_header(), two_nodes(12, 12))


def test_a_draft_is_suggested_where_a_large_dense_model_is_slow() -> None:
    offers = two_nodes(40, 40)
    large = model_header("qwen25-72b-Q4_K_M")
    assert "draft-pays" in advice(large, offers)
    assert "draft-pays" not in advice(large, offers, has_draft=True)
    experts = header([layer(700 * MIB)] * 80, n_expert=64)
    assert "draft-pays" not in advice(experts, offers)


def test_a_long_context_is_told_its_price() -> None:
    own = [offer("head", 60 * GIB, gb_s=900, is_local=True)]
    assert "131072 tokens" in advice(even_header(), own, Workload(context=131072))["long-context"]
    assert "long-context" not in advice(even_header(), own)


def test_one_busy_device_among_waiting_ones_is_explained() -> None:
    offers = [offer("slow", 12 * GIB, gb_s=60), offer("head", 12 * GIB, gb_s=1000, is_local=True)]
    assert advice(even_header(), offers)["imbalanced"].startswith("slow/CUDA0 is busy for ")
    assert "imbalanced" not in advice(even_header(), two_nodes(12, 12))


def test_a_node_without_layers_is_named() -> None:
    found = advice(even_header(), [offer("tiny", 100 * MIB, gb_s=900), *two_nodes(12, 12)])
    assert "nothing is started on tiny" in found["unused-nodes"]


def test_a_guessed_bandwidth_is_stated() -> None:
    own = offer("head", 24 * GIB, description="Unheard-of 9000", is_local=True)
    assert "head/CUDA0 (Unheard-of 9000) with 200 GB/s" in advice(even_header(), [own])["unknown-bandwidth"]


def test_what_is_not_known_of_a_model_is_passed_on() -> None:
    model = header([layer(100 * MIB)] * 4, notes=("the architecture is new",))
    own = offer("head", 24 * GIB, gb_s=900, is_local=True)
    assert advice(model, [own])["unknown-architecture"] == "the architecture is new"


def test_more_devices_than_a_head_takes_are_no_trouble() -> None:
    offers = [offer(f"n{number}", 3 * GIB, gb_s=100 + number) for number in range(20)]
    assert {"faster-split", "unused-nodes"} <= advice(even_header(layer_mib=400), offers).keys()


def test_a_head_without_devices_is_told_the_price_of_its_cpu() -> None:
    assert advice(even_header(), []).keys() == {"cpu-layers"}


def test_without_an_estimate_nothing_is_said_of_speed() -> None:
    memory = MemoryModel(even_header(layer_mib=100), SHORT)
    offers = two_nodes(10, 10)
    assert advise(memory, choose_split(memory, offers, "memory"), offers, Estimate()) == ()
