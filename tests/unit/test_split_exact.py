"""The chosen split against every possible one, on small models."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.errors import PlanDoesNotFit
from clusterctl.llama.model_header import ModelHeader
from clusterctl.model import MIB, Offer, Split, Workload
from clusterctl.planning.memory import MemoryModel
from clusterctl.planning.proportional import apportion
from clusterctl.planning.split import Strategy, choose_split
from clusterctl.planning.token_time import TokenTime
from tests.unit.llama_placement import layer_devices
from tests.unit.memory_truth import estimate_memory
from tests.unit.synthetic import (
    GIB,
    assignments,
    even_header,
    fits,
    offer,
    ranges_of,
    small_clusters,
    small_models,
    small_workloads,
)

strategies: st.SearchStrategy[Strategy] = st.sampled_from(("memory", "speed"))
host_budgets = st.none() | st.integers(150, 900).map(lambda mib: mib * MIB)


def slots_by_offer(split: Split, offers: list[Offer]) -> tuple[int, ...]:
    slots = {share.offer.label: share.slots for share in split.shares}
    return tuple(slots.get(own.label, 0) for own in offers)


def time_s(model: ModelHeader, workload: Workload, offers: list[Offer], slots: tuple[int, ...]) -> float:
    """Seconds per token at half the context, from the time of each slot alone."""
    memory = MemoryModel(model, workload)
    time = TokenTime(memory, memory.shape.cells // 2)
    total = 0.0
    for own, (first, end) in zip(offers, ranges_of(slots, workload.cpu_layers), strict=True):
        if first < end:
            total += time.handing_over_s(own)
        for slot in range(first, end):
            total += time.launching_s(slot, slot + 1) + time.reading_s(own.bandwidth_gb_s or 0, slot, slot + 1)
    return total


@given(small_models(), small_clusters(), host_budgets, strategies, st.data())
def test_a_split_is_found_wherever_one_fits(
    model: ModelHeader, offers: list[Offer], host_budget: int | None, strategy: Strategy, data: st.DataObject
) -> None:
    workload = data.draw(small_workloads(model.n_layer))
    possible = [
        slots
        for slots in assignments(model.n_layer + 1 - workload.cpu_layers, len(offers))
        if fits(model, workload, offers, slots, host_budget)
    ]
    memory = MemoryModel(model, workload)
    if not possible:
        with pytest.raises(PlanDoesNotFit):
            choose_split(memory, offers, strategy, host_budget_bytes=host_budget)
        return
    split = choose_split(memory, offers, strategy, host_budget_bytes=host_budget)
    chosen = slots_by_offer(split, offers)
    assert chosen in possible
    devices, host = estimate_memory(model, workload, split.tensor_split)
    assert tuple(share.memory for share in split.shares) == devices
    assert split.host == host
    if strategy == "speed":
        best = min(time_s(model, workload, offers, slots) for slots in possible)
        assert time_s(model, workload, offers, chosen) == pytest.approx(best)


@given(st.data())
def test_llama_cpp_places_the_layers_as_planned(data: st.DataObject) -> None:
    """Its own float32 rule, on the slot counts that are passed to it."""
    n_layer = data.draw(st.integers(1, 200))
    cpu_layers = data.draw(st.integers(0, n_layer))
    budgets = data.draw(st.lists(st.integers(2, 60), min_size=1, max_size=16))
    offers = [offer(f"n{number}", gib * GIB, backend="cpu") for number, gib in enumerate(budgets)]
    memory = MemoryModel(even_header(n_layer, layer_mib=1), Workload(context=256, cpu_layers=cpu_layers))
    split = choose_split(memory, offers, data.draw(strategies))
    placed = layer_devices(n_layer, n_layer + 1 - cpu_layers, split.tensor_split)
    assert placed[:cpu_layers] == (None,) * cpu_layers
    for device, share in enumerate(split.shares):
        own = [slot for slot, where in enumerate(placed) if where == device]
        layers = [slot for slot in own if slot < n_layer]
        assert (share.first_layer, share.last_layer) == ((layers[0], layers[-1]) if layers else (None, None))
        assert share.has_output == (n_layer in own)
    assert Counter(placed)[None] == cpu_layers


@given(st.integers(0, 300), st.lists(st.integers(0, 10**12), min_size=1, max_size=16).filter(any))
def test_apportioned_parts_are_a_quota_rounded_up_or_down(count: int, weights: list[int]) -> None:
    parts = apportion(count, weights)
    assert sum(parts) == count
    for part, weight in zip(parts, weights, strict=True):
        assert count * weight // sum(weights) <= part <= -(-count * weight // sum(weights))


@given(st.integers(1, 100), st.lists(st.integers(1, 10**6), min_size=2, max_size=8), st.data())
def test_more_weight_never_gets_a_smaller_part(count: int, weights: list[int], data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(weights) - 1))
    heavier = list(weights)
    heavier[index] += data.draw(st.integers(0, 10**6))
    assert apportion(count, heavier)[index] >= apportion(count, weights)[index]
