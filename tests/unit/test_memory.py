"""The memory model against what llama.cpp itself accounts for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.errors import UsageError
from clusterctl.model import MIB, Memory, Workload
from clusterctl.planning.kv_cache import CacheShape, kv_bytes
from clusterctl.planning.memory import (
    MemoryModel,
    is_pipelined,
    whole_model_memory,
)
from tests.unit.memory_truth import HOST, Row, estimate_memory, model_header, model_names, rows, small_models

# A few token-wide inputs are not modelled; this share of a residual stream holds them.
NEGLIGIBLE = 0.02


@cache
def all_rows() -> tuple[Row, ...]:
    return tuple(rows())


@cache
def predictions() -> tuple[tuple[Row, str, Memory, Memory], ...]:
    """Row, device, what was measured, what is predicted, for every device that holds anything."""
    return tuple(_predict())


def _predict() -> Iterator[tuple[Row, str, Memory, Memory]]:
    for row in all_rows():
        if row.has_moving_option:
            continue
        devices, host = estimate_memory(row.header, row.workload, row.slots)
        # The table leaves the output buffer out.
        logits = MemoryModel(row.header, row.workload).output_buffer_bytes
        host = replace(host, compute_bytes=host.compute_bytes - logits)
        yield from ((row, name, row.measured[name], got) for name, got in zip(row.devices, devices, strict=True))
        yield row, HOST, row.measured[HOST], host


def test_the_table_is_whole() -> None:
    assert len(all_rows()) == 387
    assert sum(row.has_moving_option for row in all_rows()) == 4


def test_weights_are_exact_to_the_byte_in_every_row() -> None:
    wrong = [
        f"{row.name} {device}: {got.model_bytes} instead of {measured.model_bytes}"
        for row, device, measured, got in predictions()
        if got.model_bytes != measured.model_bytes
    ]
    assert not wrong


def test_the_kv_cache_is_exact_to_the_byte_in_every_row() -> None:
    wrong = [
        f"{row.name} {device}: {got.kv_bytes} instead of {measured.kv_bytes}"
        for row, device, measured, got in predictions()
        if got.kv_bytes != measured.kv_bytes
    ]
    assert not wrong


def test_weights_and_cache_of_other_architectures_are_what_llama_cpp_allocates() -> None:
    """Sliding windows, shared caches, per-layer inputs, Mamba, RWKV, short convolutions, two kinds of head."""
    models = list(small_models())
    assert len(models) == 30
    for model in models:
        _, host = estimate_memory(model.header, model.workload, [])
        for size, logged in ((host.model_bytes, model.model_mib), (host.kv_bytes, model.cache_mib)):
            # The log rounds every buffer to two decimals.
            assert size / MIB == pytest.approx(sum(logged), abs=0.006 * len(logged)), model.header.file


def test_without_flash_attention_all_values_are_as_wide_as_the_widest() -> None:
    gemma4 = next(model for model in small_models() if model.header.architecture == "gemma4")
    workload = replace(gemma4.workload, flash_attention=False)
    _, host = estimate_memory(gemma4.header, workload, [])
    # As logged by llama.cpp b10434: full layers 2 + 2 MiB, sliding layers 0.31 + 0.62 MiB.
    assert host.kv_bytes / MIB == pytest.approx(2 + 2 + 0.31 + 0.62, abs=0.01)


def test_options_that_move_things_to_the_host_change_no_sum() -> None:
    for row in all_rows():
        if not row.has_moving_option:
            continue
        devices, host = estimate_memory(row.header, row.workload, row.slots)
        everything = (*devices, host)
        assert sum(memory.model_bytes for memory in everything) == sum(
            memory.model_bytes for memory in row.measured.values()
        ), row.name
        assert sum(memory.kv_bytes for memory in everything) == sum(
            memory.kv_bytes for memory in row.measured.values()
        ), row.name


def test_a_device_without_slots_takes_nothing() -> None:
    empty = [(row, got) for row, _, measured, got in predictions() if measured == Memory()]
    assert empty
    assert all(got == Memory() for _, got in empty)


def test_compute_is_within_three_percent_of_the_device_in_most_rows() -> None:
    errors = [
        abs(got.compute_bytes - measured.compute_bytes) / measured.total_bytes
        for row, _, measured, got in predictions()
        if row.workload.flash_attention and not row.workload.cpu_layers and measured.total_bytes
    ]
    assert sum(error <= 0.03 for error in errors) >= 0.95 * len(errors)


def test_compute_is_never_far_below_the_truth() -> None:
    far_below = [
        f"{row.name} {device}: {got.compute_bytes} for {measured.compute_bytes}"
        for row, device, measured, got in predictions()
        if measured.compute_bytes - got.compute_bytes > 2.2 * row.stream_bytes
    ]
    assert not far_below


def test_compute_is_a_safe_bound_where_no_form_holds() -> None:
    """Latent attention, recurrent models, no flash attention, experts behind CPU layers."""
    below = [
        f"{row.name} {device}: {got.compute_bytes} for {measured.compute_bytes}"
        for row, device, measured, got in predictions()
        if (
            row.kind in {"MLA", "recurrent"}
            or not row.workload.flash_attention
            or (row.header.n_expert and row.workload.cpu_layers)
        )
        and device != HOST
        and measured.compute_bytes - got.compute_bytes > NEGLIGIBLE * row.stream_bytes
    ]
    assert not below


def test_pipelining_is_predicted() -> None:
    for row in all_rows():
        if not row.options:
            assert is_pipelined(len(row.devices), row.workload.cpu_layers) == row.is_pipelined, row.name


@given(st.sampled_from(model_names()), st.data())
def test_all_splits_of_a_model_hold_the_same_weights_and_cache(model: str, data: st.DataObject) -> None:
    header = model_header(model)
    workload = Workload(context=8192)
    cuts = data.draw(st.lists(st.integers(0, header.n_layer + 1), max_size=5).map(sorted))
    bounds = [0, *cuts, header.n_layer + 1]
    slots = [end - start for start, end in pairwise(bounds)]
    devices, host = estimate_memory(header, workload, slots)
    whole, _ = estimate_memory(header, workload, [header.n_layer + 1])
    holders = sum(start < min(end, header.n_layer) for start, end in pairwise(bounds))
    shared = header.shared_bytes * (holders - 1)
    assert sum(device.model_bytes for device in devices) == whole[0].model_bytes + shared
    assert sum(device.kv_bytes for device in devices) == whole[0].kv_bytes
    assert host.model_bytes == header.input_bytes


@given(st.sampled_from(model_names()), st.data())
def test_one_more_layer_never_takes_less_memory(model: str, data: st.DataObject) -> None:
    header = model_header(model)
    memory = MemoryModel(header, Workload(context=16384, slots=2, kv_unified=True))
    first = data.draw(st.integers(0, header.n_layer - 1))
    end = data.draw(st.integers(first + 1, header.n_layer))
    pipelined = data.draw(st.booleans())
    less = memory.device_memory(first, end, pipelined=pipelined)
    more = memory.device_memory(first, end + 1, pipelined=pipelined)
    assert more.model_bytes >= less.model_bytes
    assert more.kv_bytes >= less.kv_bytes
    assert more.model_bytes + more.kv_bytes + more.compute_bytes >= less.total_bytes


def test_a_device_is_the_sum_of_its_layers() -> None:
    header = model_header("gemma3-27b-Q4_0")
    workload = Workload(context=32768)
    device = MemoryModel(header, workload).device_memory(10, 20, pipelined=True)
    assert device.model_bytes == sum(layer.weight_bytes for layer in header.layers[10:20])
    assert device.kv_bytes == sum(kv_bytes(header, workload, layer) for layer in range(10, 20))


def test_a_draft_model_takes_its_weights_once_on_its_device() -> None:
    header = model_header("llama32-1b-Q8_0")
    memory = whole_model_memory(header, Workload(context=4096))
    assert memory.model_bytes == header.total_bytes
    assert memory.kv_bytes == 4096 * 16 * 2 * 512 * 2


def test_slots_that_do_not_cover_the_model_are_refused() -> None:
    with pytest.raises(ValueError, match="32 layers"):
        estimate_memory(model_header("llama31-8b-Q4_K_M"), Workload(context=4096), [16, 16])


@pytest.mark.parametrize("name", ["q9_9", "", "f16 "])
def test_an_unknown_cache_type_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="unknown KV cache type"):
        MemoryModel(model_header("llama31-8b-Q4_K_M"), Workload(context=4096, kv_type_k=name))


def test_a_cache_type_whose_blocks_do_not_fit_is_refused() -> None:
    with pytest.raises(UsageError, match="blocks of 256"):
        MemoryModel(model_header("smollm2-135m-Q4_1"), Workload(context=4096, kv_type_v="q4_k"))


def test_contexts_are_padded_as_llama_cpp_pads_them() -> None:
    header = model_header("llama31-8b-Q4_K_M")
    assert CacheShape.of(header, Workload(context=10_000)).cells == 10_240
    split = CacheShape.of(header, Workload(context=10_000, slots=3))
    assert (split.cells, split.streams, split.micro_batch) == (3_584, 3, 513)
    unified = CacheShape.of(header, Workload(context=10_000, slots=3, kv_unified=True))
    assert (unified.cells, unified.streams) == (10_240, 1)


def test_a_measured_architecture_has_no_notes() -> None:
    assert all(not model_header(model).notes for model in model_names())


def test_drafted_tokens_want_logits_of_their_own() -> None:
    header = model_header("llama31-8b-Q4_K_M")
    plain = Workload(context=4096)
    memories = [
        MemoryModel(header, replace(plain, draft_tokens=tokens)).host_memory(pipelined=False).compute_bytes
        for tokens in (0, 16)
    ]
    assert memories[1] - memories[0] == 16 * 4 * header.n_vocab
