"""The split: who gets what, who gets nothing, and why."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterctl.errors import PlanDoesNotFit, UsageError
from clusterctl.llama.model_header import ModelHeader
from clusterctl.model import MIB, Link, Memory, Offer, Split, Workload
from clusterctl.planning.memory import MemoryModel
from clusterctl.planning.slot_ranges import SlotRanges
from clusterctl.planning.split import Strategy, choose_split
from tests.unit.memory_truth import estimate_memory, model_header, model_names
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

WORKLOAD = Workload(context=8192)


def memory_of(header: ModelHeader, workload: Workload = WORKLOAD) -> MemoryModel:
    return MemoryModel(header, workload)


def slots_of(split: Split) -> dict[str, int]:
    return {share.offer.node: share.slots for share in split.shares}


def slots_if_it_fits(memory: MemoryModel, offers: list[Offer]) -> dict[str, int]:
    try:
        return slots_of(choose_split(memory, offers, "memory"))
    except PlanDoesNotFit:
        return {}


# --- memory ---------------------------------------------------------------------------------------------


def test_equal_devices_get_equal_parts() -> None:
    offers = [offer(name, 12 * GIB) for name in "abc"]
    split = choose_split(memory_of(even_header(32)), offers, "memory")
    assert split.tensor_split == (11, 11, 11)
    assert [(share.first_layer, share.last_layer) for share in split.shares] == [(0, 10), (11, 21), (22, 31)]
    assert [share.has_output for share in split.shares] == [False, False, True]
    assert split.unused == ()


def test_parts_are_in_proportion_to_the_room_for_layers() -> None:
    offers = [offer("big", 60 * GIB), offer("small", 20 * GIB)]
    model = memory_of(even_header(63))
    split = choose_split(model, offers, "memory")
    ranges = SlotRanges(model)
    rooms = [ranges.room_bytes(own) for own in offers]
    assert split.tensor_split[0] == round(64 * rooms[0] / sum(rooms))
    assert "of room for layers" in split.shares[0].reason


def test_a_device_without_room_for_a_layer_is_left_out_and_named() -> None:
    offers = [offer("tiny", 700 * MIB), offer("big", 30 * GIB, is_local=True)]
    split = choose_split(memory_of(even_header()), offers, "memory")
    assert slots_of(split) == {"big": 33}
    [(unused, reason)] = split.unused
    assert unused.node == "tiny"
    assert "not even one layer fits" in reason
    assert "0.7 GiB may be used" in reason


def test_one_device_is_planned_without_the_buffers_of_several() -> None:
    model = memory_of(even_header())
    alone = choose_split(model, [offer("big", 30 * GIB)], "memory")
    assert alone.shares[0].memory == model.device_memory(0, 33, pipelined=False)
    assert alone.host == model.host_memory(pipelined=False)


def test_a_model_that_fits_one_device_only_without_pipelining_goes_there() -> None:
    workload = Workload(context=131072, batch_physical=2048)
    model = memory_of(even_header(4), workload)
    need = model.device_memory(0, 5, pipelined=False).total_bytes
    split = choose_split(model, [offer("a", need + GIB), offer("b", need + GIB)], "memory")
    assert len(split.shares) == 1


def test_a_head_takes_the_sixteen_largest_devices() -> None:
    offers = [offer(f"n{number}", (20 + number) * GIB) for number in range(18)]
    split = choose_split(memory_of(even_header(64)), offers, "memory")
    assert len(split.shares) == 16
    assert [own.node for own, _ in split.unused] == ["n0", "n1"]
    assert all("at most 16" in reason for _, reason in split.unused)


def test_layers_on_the_cpu_are_the_first_ones() -> None:
    workload = replace(WORKLOAD, cpu_layers=10)
    split = choose_split(
        memory_of(even_header(32), workload), [offer("a", 9 * GIB), offer("b", 9 * GIB)], "memory"
    )
    assert split.cpu_layers == 10
    assert split.shares[0].first_layer == 10
    assert sum(split.tensor_split) == 23
    assert split.host == memory_of(even_header(32), workload).host_memory(pipelined=False)


def test_more_layers_on_the_cpu_than_there_are_is_a_fault() -> None:
    model = memory_of(even_header(32), replace(WORKLOAD, cpu_layers=33))
    with pytest.raises(UsageError, match="33, but the model has 32 layers"):
        choose_split(model, [offer("a", 9 * GIB)], "memory")


def test_a_head_without_devices_runs_everything_on_its_cpu() -> None:
    model = memory_of(even_header(32))
    split = choose_split(model, [], "memory", host_budget_bytes=64 * GIB)
    assert split.shares == ()
    assert split.tensor_split == ()
    assert split.cpu_layers == 33
    whole = model.device_memory(0, 33, pipelined=False)
    assert split.host.model_bytes >= whole.model_bytes
    assert split.host.kv_bytes == whole.kv_bytes


def test_the_memory_of_the_head_is_checked() -> None:
    model = memory_of(even_header(32))
    with pytest.raises(PlanDoesNotFit, match="head's own memory needs 1"):
        choose_split(model, [], "memory", host_budget_bytes=8 * GIB)
    with pytest.raises(PlanDoesNotFit, match="head's own memory"):
        choose_split(model, [offer("a", 60 * GIB)], "memory", host_budget_bytes=100 * MIB)


@pytest.mark.parametrize("remote_gib", [8, 24, 80])
@pytest.mark.parametrize("strategy", ["memory", "speed"])
def test_the_output_layer_alone_stays_with_the_head(remote_gib: int, strategy: Strategy) -> None:
    model = memory_of(even_header(32), replace(WORKLOAD, cpu_layers=32))
    offers = [offer("remote", remote_gib * GIB), offer("own", 8 * GIB, is_local=True)]
    split = choose_split(model, offers, strategy)
    assert slots_of(split) == {"own": 1}
    assert split.shares[0].has_output


def test_the_output_layer_goes_over_the_network_if_the_heads_device_has_no_room_for_it() -> None:
    model = memory_of(even_header(32), replace(WORKLOAD, cpu_layers=32))
    offers = [offer("remote", 8 * GIB), offer("own", 100 * MIB, is_local=True)]
    assert slots_of(choose_split(model, offers, "memory")) == {"remote": 1}


@pytest.mark.parametrize(
    ("strategy", "layers"), [("memory", None), ("speed", None), ("manual", {"a": 7, "b": 1, "c": 1})]
)
def test_a_device_that_would_hold_no_weights_is_left_out(
    strategy: Strategy, layers: dict[str, int] | None
) -> None:
    """The slots of multi-token prediction; `status` takes a worker without weights for one that was lost."""
    prediction = layer(0, kv_width=0)
    model = memory_of(header([*even_header(7).layers, prediction, prediction]))
    sizes = {"a": 5, "b": 2, "c": 2}
    offers = [offer(name, gib * GIB, gb_s=100) for name, gib in sizes.items()]
    split = choose_split(model, offers, strategy, layers=layers)
    assert all(share.memory.model_bytes for share in split.shares)
    assert sum(split.tensor_split) == 10
    if strategy == "manual":
        assert slots_of(split) == {"a": 7, "c": 3}
        assert "multi-token prediction" in split.unused[0][1]


@given(small_models(), small_clusters(), st.data())
def test_more_memory_never_gets_a_device_fewer_layers(
    model: ModelHeader, offers: list[Offer], data: st.DataObject
) -> None:
    memory = MemoryModel(model, data.draw(small_workloads(model.n_layer)))
    index = data.draw(st.integers(0, len(offers) - 1))
    larger = list(offers)
    added = data.draw(st.integers(0, 4000)) * MIB
    larger[index] = replace(offers[index], budget_bytes=offers[index].budget_bytes + added)
    node = offers[index].node
    assert slots_if_it_fits(memory, larger).get(node, 0) >= slots_if_it_fits(memory, offers).get(node, 0)


@pytest.mark.parametrize("model", model_names())
@pytest.mark.parametrize("strategy", ["memory", "speed"])
def test_real_models_are_placed_as_the_memory_model_says(model: str, strategy: Strategy) -> None:
    header = model_header(model)
    workload = Workload(context=32768, slots=2, kv_unified=True)
    size = MemoryModel(header, workload).device_memory(0, header.n_layer + 1, pipelined=True).total_bytes
    offers = [
        offer("a", size // 2 + 3 * GIB, gb_s=256),
        offer("b", size // 4 + 3 * GIB, gb_s=1000),
        offer("c", size // 3 + 3 * GIB, is_local=True, gb_s=500),
    ]
    split = choose_split(MemoryModel(header, workload), offers, strategy)
    devices, host = estimate_memory(header, workload, split.tensor_split)
    assert tuple(share.memory for share in split.shares) == devices
    assert split.host == host
    assert all(share.memory.total_bytes <= share.offer.budget_bytes for share in split.shares)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(model_names()), st.integers(0, 3), st.data())
def test_the_ranges_that_fit_are_those_found_one_by_one(model: str, cpu_layers: int, data: st.DataObject) -> None:
    """The search for them rests on a longer range never needing less."""
    header = model_header(model)
    workload = Workload(
        context=data.draw(st.sampled_from([4096, 65536])),
        slots=data.draw(st.sampled_from([1, 4])),
        cpu_layers=cpu_layers,
    )
    ranges = SlotRanges(MemoryModel(header, workload))
    whole = ranges.memory(ranges.first, ranges.end).total_bytes
    own = offer("a", int(whole * data.draw(st.floats(0.01, 1.1))) + GIB)
    for end, (lowest, fits_from_first) in enumerate(ranges.starts(own)):
        fitting = [start for start in range(end) if ranges.fits(own, ranges.first + start, ranges.first + end)]
        expected = [0] * fits_from_first + list(range(lowest, end))
        assert fitting == expected


def test_the_output_layer_may_ease_a_recurrent_models_buffers() -> None:
    """Such a graph hands over less where it ends, so a longer range can need less there."""
    ranges = SlotRanges(
        MemoryModel(model_header("mamba-codestral-7b-Q8_0"), Workload(context=4096, batch_physical=2048))
    )
    own = offer("a", ranges.need_bytes(offer("a", 0), 40, ranges.end))
    assert not ranges.fits(own, 40, ranges.end - 1)
    *_, (before_output, _), (with_output, _) = ranges.starts(own)
    assert with_output == 40 < before_output


# --- manual ---------------------------------------------------------------------------------------------


def test_layers_by_hand_go_where_the_recipe_says_and_the_output_comes_on_top() -> None:
    offers = [offer("a", 20 * GIB), offer("b", 20 * GIB), offer("c", 20 * GIB)]
    split = choose_split(memory_of(even_header(32)), offers, "manual", layers={"a": 20, "b/CUDA0": 12})
    assert split.tensor_split == (20, 13)
    assert [(own.node, reason) for own, reason in split.unused] == [("c", "the recipe gives it no layers")]


def test_the_layers_of_a_node_are_divided_over_its_devices() -> None:
    offers = [offer("a", 30 * GIB), offer("a", 10 * GIB, device="CUDA1"), offer("b", 30 * GIB)]
    split = choose_split(memory_of(even_header(32)), offers, "manual", layers={"a": 20, "b": 12})
    assert split.tensor_split == (15, 5, 13)


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ({"a": 20, "b": 10}, "adds up to 30, but the model has 32 layers"),
        ({"a": 20, "typo": 12}, "'typo' offers no device"),
        ({}, "adds up to 0"),
    ],
)
def test_layers_that_do_not_match_the_model_are_refused(layers: dict[str, int], message: str) -> None:
    offers = [offer("a", 20 * GIB), offer("b", 20 * GIB)]
    with pytest.raises(UsageError, match=message):
        choose_split(memory_of(even_header(32)), offers, "manual", layers=layers)


def test_by_hand_there_must_be_a_layer_to_give() -> None:
    model = memory_of(even_header(32), replace(WORKLOAD, cpu_layers=32))
    with pytest.raises(UsageError, match=r"has nothing to give: split\.cpu_layers keeps all 32 layers") as caught:
        choose_split(model, [offer("a", 20 * GIB)], "manual", layers={"a": 1})
    assert "strategy: memory" in (caught.value.hint or "")


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(UsageError) as caught:
        choose_split(memory_of(even_header(32)), [offer("a", 20 * GIB)], "manual", layers={"b": 32})
    assert caught.value.hint == "known are a, a/CUDA0"


def test_layers_by_hand_leave_those_on_the_cpu_out() -> None:
    model = memory_of(even_header(32), replace(WORKLOAD, cpu_layers=2))
    split = choose_split(model, [offer("a", 20 * GIB)], "manual", layers={"a": 30})
    assert split.tensor_split == (31,)
    with pytest.raises(UsageError, match="32 layers, and 2 of them stay on the CPU"):
        choose_split(model, [offer("a", 20 * GIB)], "manual", layers={"a": 32})


def test_a_part_by_hand_that_does_not_fit_names_the_device_and_a_split_that_fits() -> None:
    offers = [offer("a", 20 * GIB), offer("b", 5 * GIB)]
    with pytest.raises(PlanDoesNotFit, match=r"b/CUDA0 may use 5.0 GiB, but its part needs \d") as caught:
        choose_split(memory_of(even_header(32)), offers, "manual", layers={"a": 10, "b": 22})
    assert "a/CUDA0" not in caught.value.message
    assert "strategy: memory}` fits" in (caught.value.hint or "")


def test_a_split_by_hand_over_too_many_devices_is_refused() -> None:
    offers = [offer(f"n{number}", 20 * GIB) for number in range(17)]
    layers = {own.node: 2 for own in offers}
    with pytest.raises(UsageError, match="17 devices, and a head takes at most 16"):
        choose_split(memory_of(even_header(34)), offers, "manual", layers=layers)


def test_a_split_by_hand_is_checked_against_the_heads_memory() -> None:
    with pytest.raises(PlanDoesNotFit, match="head's own memory"):
        choose_split(
            memory_of(even_header(32)),
            [offer("a", 30 * GIB)],
            "manual",
            layers={"a": 32},
            host_budget_bytes=100 * MIB,
        )


# --- speed ----------------------------------------------------------------------------------------------


def test_the_fastest_device_that_holds_all_gets_all() -> None:
    offers = [offer("slow", 40 * GIB, gb_s=200), offer("fast", 40 * GIB, gb_s=1000)]
    split = choose_split(memory_of(even_header(32)), offers, "speed")
    assert slots_of(split) == {"fast": 33}
    [(unused, reason)] = split.unused
    assert unused.node == "slow"
    assert "not needed" in reason


def test_fast_devices_are_filled_before_slow_ones() -> None:
    offers = [offer("slow", 40 * GIB, gb_s=200), offer("fast", 8 * GIB, gb_s=1000)]
    split = choose_split(memory_of(even_header(32)), offers, "speed")
    assert split.shares[1].reason.endswith(", full")
    assert "200 GB/s" in split.shares[0].reason


def test_a_remote_device_must_save_more_than_its_hop_costs() -> None:
    header = even_header(8, layer_mib=20)
    remote = offer("remote", 8 * GIB, gb_s=1000, link=Link(10, 0.2))
    offers = [remote, offer("own", 8 * GIB, gb_s=300, is_local=True)]
    assert slots_of(choose_split(memory_of(header), offers, "speed")) == {"own": 9}
    large = even_header(8, layer_mib=700)
    assert slots_of(choose_split(memory_of(large), offers, "speed")) == {"remote": 9}


def test_of_two_equal_workers_the_one_behind_the_better_network_is_taken() -> None:
    offers = [
        offer("wireless", 20 * GIB, gb_s=1000, link=Link(0.2, 15)),
        offer("wired", 20 * GIB, gb_s=1000, link=Link(10, 0.2)),
    ]
    assert slots_of(choose_split(memory_of(even_header(8)), offers, "speed")) == {"wired": 9}


def test_half_of_the_context_counts_for_speed() -> None:
    model, long = even_header(8, layer_mib=20), Workload(context=262144)
    offers = [offer("remote", 20 * GIB, gb_s=1000), offer("own", 20 * GIB, gb_s=300, is_local=True)]
    assert slots_of(choose_split(memory_of(model), offers, "speed")) == {"own": 9}
    assert slots_of(choose_split(memory_of(model, long), offers, "speed")) == {"remote": 9}


def test_a_split_without_a_share_takes_no_memory() -> None:
    assert memory_of(even_header(2)).device_memory(1, 1, pipelined=True) == Memory()
