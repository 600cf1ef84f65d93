"""What is said of a model that does not fit: how much is missing, and changes that really help."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterctl.errors import PlanDoesNotFit
from clusterctl.llama.model_header import ModelHeader
from clusterctl.model import MIB, Offer, Workload
from clusterctl.planning.assignment import fits_at_all
from clusterctl.planning.margins import margin_bytes
from clusterctl.planning.memory import MemoryModel
from clusterctl.planning.remedies import halves, least
from clusterctl.planning.slot_ranges import SlotRanges
from clusterctl.planning.split import choose_split
from tests.unit.synthetic import (
    GIB,
    even_header,
    header,
    layer,
    offer,
    small_clusters,
    small_models,
    small_workloads,
)

LONG = Workload(context=65536)


def shortage(model: ModelHeader, workload: Workload, offers: list[Offer]) -> PlanDoesNotFit:
    with pytest.raises(PlanDoesNotFit) as caught:
        choose_split(MemoryModel(model, workload), offers, "memory")
    return caught.value


def does_fit(model: ModelHeader, workload: Workload, offers: list[Offer]) -> bool:
    try:
        choose_split(MemoryModel(model, workload), offers, "memory")
    except PlanDoesNotFit:
        return False
    return True


def promised(pattern: str, error: PlanDoesNotFit) -> int:
    found = re.search(pattern, error.hint or "")
    assert found, error.hint
    return int(found[1])


def test_the_message_says_how_much_is_missing_and_where() -> None:
    error = shortage(even_header(64), Workload(context=4096), [offer("a", 8 * GIB), offer("b", 4 * GIB)])
    assert error.exit_code == 5
    assert re.search(r"needs 2\d\.\d GiB \(weights 25\.2 GiB, KV cache", error.message)
    assert re.search(
        r"\d+\.\d GiB more than its devices' 12\.0 GiB: a/CUDA0 8\.0 GiB, b/CUDA0 4\.0 GiB", error.message
    )


def test_layers_too_large_for_the_gaps_are_told_from_too_little_memory() -> None:
    model = header([layer(5 * GIB)] * 4)
    error = shortage(model, Workload(context=512), [offer(name, 9 * GIB) for name in "abc"])
    assert "of its devices' 27.0 GiB, but whole layers do not fit into this" in error.message


def test_the_promised_context_is_the_longest_that_fits() -> None:
    model, offers = even_header(32), [offer("a", 10 * GIB), offer("b", 8 * GIB)]
    context = promised(r"context: (\d+)", shortage(model, LONG, offers))
    assert does_fit(model, replace(LONG, context=context), offers)
    assert not does_fit(model, replace(LONG, context=context + 1024), offers)


def test_the_promised_cpu_layers_are_the_fewest() -> None:
    model, offers = even_header(32), [offer("a", 8 * GIB), offer("b", 5 * GIB)]
    error = shortage(model, LONG, offers)
    layers = promised(r"cpu_layers: (\d+)\}", error)
    assert does_fit(model, replace(LONG, cpu_layers=layers), offers)
    assert not does_fit(model, replace(LONG, cpu_layers=layers - 1), offers)
    assert promised(r"about (\d+) ms per token", error) > 0


def test_the_promised_memory_is_the_least() -> None:
    model, offers = even_header(32), [offer("a", 8 * GIB), offer("b", 5 * GIB)]
    more = promised(r"(\d+) GiB more on a/CUDA0", shortage(model, LONG, offers))

    def with_more(gib: int) -> list[Offer]:
        return [offer("a", (8 + gib) * GIB), offers[1]]

    assert does_fit(model, LONG, with_more(more))
    assert not does_fit(model, LONG, with_more(more - 1))


def test_a_smaller_cache_is_promised_where_it_can_be_had() -> None:
    model = even_header(32, layer_mib=100)
    offers = [offer("a", 9 * GIB)]
    assert "kv_cache: {k: q8_0, v: q8_0}" in (shortage(model, LONG, offers).hint or "")
    without_flash = replace(LONG, flash_attention=False)
    assert "kv_cache" not in (shortage(model, without_flash, offers).hint or "")
    odd = header([layer(100 * MIB, kv_width=1000)] * 32)
    assert "kv_cache" not in (shortage(odd, LONG, offers).hint or "")
    tight = [offer("a", 5 * GIB)]
    small = replace(LONG, kv_type_k="q8_0", kv_type_v="q8_0")
    assert "kv_cache" not in (shortage(model, small, tight).hint or "")


def test_a_smaller_batch_is_promised_where_buffers_are_the_trouble() -> None:
    workload = Workload(context=65536, batch_physical=2048)
    model = even_header(4)
    smaller = MemoryModel(model, replace(workload, batch_physical=512)).device_memory(0, 5, pipelined=False)
    offers = [offer("a", smaller.total_bytes + margin_bytes("cpu", smaller.compute_bytes), backend="cpu")]
    batch = promised(r"batch: \{physical: (\d+)\}", shortage(model, workload, offers))
    assert does_fit(model, replace(workload, batch_physical=batch), offers)
    assert not does_fit(model, replace(workload, batch_physical=2 * batch), offers)


def test_fewer_slots_are_promised_where_their_states_are_the_trouble() -> None:
    recurrent = replace(layer(100 * MIB, kv_width=0), state_width=4 * 1024**2)
    model, workload = header([recurrent] * 32), Workload(context=2048, slots=16)
    offers = [offer("a", 9 * GIB)]
    slots = promised(r"parallel: (\d+)", shortage(model, workload, offers))
    assert does_fit(model, replace(workload, slots=slots), offers)


def test_devices_beyond_what_a_head_takes_count_for_nothing() -> None:
    """Each of twenty devices holds one of twenty slots, and a head takes sixteen."""
    model, workload = header([layer(5 * GIB)] * 19, output_bytes=5 * GIB), Workload(context=512)
    offers = [offer(f"n{number}", 8 * GIB) for number in range(20)]
    assert not fits_at_all(SlotRanges(MemoryModel(model, workload)), offers)
    assert not does_fit(model, workload, offers)


def test_nothing_is_promised_that_the_heads_memory_forbids() -> None:
    with pytest.raises(PlanDoesNotFit) as caught:
        choose_split(MemoryModel(even_header(32), LONG), [offer("a", 9 * GIB)], "memory", host_budget_bytes=GIB)
    assert "cpu_layers" not in (caught.value.hint or "")


def test_a_context_too_long_for_the_heads_own_memory_is_named_with_one_that_fits() -> None:
    model, offers, endless = even_header(32), [offer("a", 24 * GIB)], Workload(context=100_000_000)
    with pytest.raises(PlanDoesNotFit, match="the head's own memory needs") as caught:
        choose_split(MemoryModel(model, endless), offers, "memory", host_budget_bytes=8 * GIB)
    context = promised(r"context: (\d+)", caught.value)
    shorter = MemoryModel(model, replace(endless, context=context))
    assert choose_split(shorter, offers, "memory", host_budget_bytes=8 * GIB).host.total_bytes <= 8 * GIB
    assert "cpu_layers" not in (caught.value.hint or "")


def test_fewer_layers_on_the_cpu_are_promised_only_where_they_help() -> None:
    model, offers, wanted = even_header(32), [offer("a", 40 * GIB)], Workload(context=4096, cpu_layers=30)
    with pytest.raises(PlanDoesNotFit) as caught:
        choose_split(MemoryModel(model, wanted), offers, "memory", host_budget_bytes=8 * GIB)
    layers = promised(r"split: \{cpu_layers: (\d+)\}", caught.value)
    assert choose_split(
        MemoryModel(model, replace(wanted, cpu_layers=layers)), offers, "memory", host_budget_bytes=8 * GIB
    )
    with pytest.raises(PlanDoesNotFit):
        choose_split(
            MemoryModel(model, replace(wanted, cpu_layers=layers + 1)), offers, "memory", host_budget_bytes=8 * GIB
        )


def test_a_head_without_devices_is_told_what_its_memory_would_hold() -> None:
    model, endless = even_header(4), Workload(context=10_000_000)
    with pytest.raises(PlanDoesNotFit) as caught:
        choose_split(MemoryModel(model, endless), [], "memory", host_budget_bytes=8 * GIB)
    shorter = replace(endless, context=promised(r"context: (\d+)", caught.value))
    assert choose_split(MemoryModel(model, shorter), [], "memory", host_budget_bytes=8 * GIB)


@settings(max_examples=40, deadline=None)
@given(small_models(), small_clusters(), st.data())
def test_every_shortage_has_a_next_step(model: ModelHeader, offers: list[Offer], data: st.DataObject) -> None:
    workload = data.draw(small_workloads(model.n_layer))
    if not does_fit(model, workload, offers):
        error = shortage(model, workload, offers)
        assert error.hint
        assert "GiB" in error.message


@given(st.integers(0, 40), st.integers(0, 50))
def test_the_least_value_is_found_wherever_it_is(count: int, threshold: int) -> None:
    assert least(range(count), threshold.__le__) == (threshold if threshold < count else None)


def test_halves_end_at_the_lowest() -> None:
    assert list(halves(512, 100)) == [256, 128]
    assert list(halves(1, 1)) == []
