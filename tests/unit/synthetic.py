"""Small made-up models and devices for tests of the planning."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

from hypothesis import strategies as st

from clusterctl.llama.layer import Layer
from clusterctl.llama.model_header import ModelHeader
from clusterctl.model import MIB, UNKNOWN_LINK, Link, Memory, Offer, Workload
from clusterctl.planning.margins import margin_bytes
from tests.unit.memory_truth import estimate_memory, model_header

GIB = 1024 * MIB


def layer(
    weight_bytes: int, *, active_bytes: int | None = None, is_sliding: bool = False, kv_width: int = 1024
) -> Layer:
    """A layer of Llama 3.1 8B with another weight and cache."""
    return replace(
        _sample().layers[0],
        weight_bytes=weight_bytes,
        active_bytes=weight_bytes if active_bytes is None else active_bytes,
        is_sliding=is_sliding,
        k_width=kv_width,
        v_width=kv_width,
    )


def expert_layer(elements: int, active_elements: int, bytes_per_weight: float) -> Layer:
    """A layer of so many weights, of which one token uses only some."""
    own = layer(int(elements * bytes_per_weight), active_bytes=int(active_elements * bytes_per_weight))
    return replace(own, elements=elements, active_elements=active_elements)


def header(
    layers: Sequence[Layer], *, output_bytes: int = 200 * MIB, n_expert: int = 0, notes: tuple[str, ...] = ()
) -> ModelHeader:
    """A model of these layers, otherwise like Llama 3.1 8B."""
    input_bytes = 150 * MIB
    return replace(
        _sample(),
        layers=tuple(layers),
        n_expert=n_expert,
        n_expert_used=min(n_expert, 8),
        window=1024 if any(layer.is_sliding for layer in layers) else None,
        input_bytes=input_bytes,
        output_bytes=output_bytes,
        total_bytes=sum(layer.weight_bytes for layer in layers) + output_bytes + input_bytes,
        notes=notes,
    )


def _sample() -> ModelHeader:
    return model_header("llama31-8b-Q4_K_M")


def even_header(n_layer: int = 32, layer_mib: int = 400) -> ModelHeader:
    return header([layer(layer_mib * MIB)] * n_layer)


def offer(
    node: str,
    budget_bytes: int,
    *,
    device: str = "CUDA0",
    is_local: bool = False,
    backend: str | None = "cuda",
    gb_s: float | None = None,
    description: str = "",
    link: Link = UNKNOWN_LINK,
    tflop_s: float | None = None,
) -> Offer:
    endpoint = None if is_local else f"10.0.0.1:{50000 + sum(node.encode())}"
    return Offer(node, device, description, backend, endpoint, budget_bytes, gb_s, link, fp16_tflop_s=tflop_s)


def assignments(count: int, devices: int) -> Iterator[tuple[int, ...]]:
    """Every way to lay `count` slots on the devices, in order."""
    if devices == 1:
        yield (count,)
        return
    for own in range(count + 1):
        yield from ((own, *rest) for rest in assignments(count - own, devices - 1))


def fits(
    model: ModelHeader,
    workload: Workload,
    offers: Sequence[Offer],
    slots: Sequence[int],
    host_budget_bytes: int | None,
) -> bool:
    """Whether an assignment fits, asked of the memory model without any of the planner."""
    used = [(own, count) for own, count in zip(offers, slots, strict=True) if count]
    devices, host = estimate_memory(model, workload, [count for _, count in used])
    return _within(host, host_budget_bytes) and all(
        memory.total_bytes + margin_bytes(own.backend, memory.compute_bytes) <= own.budget_bytes
        for (own, _), memory in zip(used, devices, strict=True)
    )


def _within(memory: Memory, budget_bytes: int | None) -> bool:
    return budget_bytes is None or memory.total_bytes <= budget_bytes


def ranges_of(slots: Sequence[int], first: int) -> list[tuple[int, int]]:
    """First slot and end of every device's part."""
    return list(pairwise(accumulate(slots, initial=first)))


@st.composite
def small_models(draw: st.DrawFn) -> ModelHeader:
    layers = draw(
        st.lists(
            st.builds(
                layer,
                st.integers(1, 600).map(lambda mib: mib * MIB),
                active_bytes=st.integers(1, 600).map(lambda mib: mib * MIB),
                is_sliding=st.booleans(),
                kv_width=st.sampled_from([0, 512, 4096]),
            ),
            min_size=1,
            max_size=6,
        )
    )
    output = draw(st.integers(1, 600)) * MIB
    return header(layers, output_bytes=output, n_expert=draw(st.sampled_from([0, 16])))


@st.composite
def small_workloads(draw: st.DrawFn, n_layer: int) -> Workload:
    return Workload(
        context=draw(st.sampled_from([2048, 16384])),
        batch_physical=draw(st.sampled_from([64, 512])),
        flash_attention=draw(st.booleans()),
        cpu_layers=draw(st.sampled_from([0, 0, 0, 1, n_layer])),
    )


@st.composite
def small_clusters(draw: st.DrawFn) -> list[Offer]:
    """Up to four devices, workers first, with budgets that are now and then just too small."""
    remote = draw(st.integers(0, 3))
    local = draw(st.integers(0 if remote else 1, 1))
    budgets = st.integers(0, 3600).map(lambda mib: mib * MIB)
    return [
        offer(
            f"node{number}",
            draw(budgets),
            is_local=number >= remote,
            backend=draw(st.sampled_from(["cpu", "cpu", "vulkan"])),
            gb_s=draw(st.sampled_from([10.0, 50.0, 400.0, 2000.0])),
            link=draw(st.sampled_from([UNKNOWN_LINK, Link(gbit_s=1, round_trip_ms=0.5), Link(0.1, 20)])),
        )
        for number in range(remote + local)
    ]
