"""The estimate against published runs, and its parts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp, log
from statistics import fmean

import pytest

from clusterctl.model import Link, Offer, Split, Workload
from clusterctl.planning.bandwidth import bandwidth_gb_s, is_unified, known_bandwidth_gb_s
from clusterctl.planning.data_sheets import unknown_bandwidth_gb_s
from clusterctl.planning.estimate import decode_tok_s, estimate, time_parts
from clusterctl.planning.memory import MemoryModel
from clusterctl.planning.split import Strategy, choose_split
from clusterctl.planning.token_time import TokenTime
from tests.unit.memory_truth import model_header
from tests.unit.synthetic import GIB, even_header, header, layer, offer

GB = 10**9
WORKLOAD = Workload(context=4096)


@dataclass(frozen=True)
class Run:
    """A published run: bytes that a token reads, layers, and each device's bandwidth and part of the layers.

    Of several devices, the last is the head's own; `hops` of them are remote.
    """

    name: str
    tok_s: float
    active_gb: float
    n_layer: int
    gb_s: tuple[float, ...]
    parts: tuple[int, ...]
    hops: int = 0

    def estimated_tok_s(self) -> float:
        own = layer(int(self.active_gb * GB / self.n_layer), kv_width=0)
        model = header([own] * self.n_layer, output_bytes=0)
        offers = [
            offer(f"n{index}", 500 * GIB, gb_s=gb_s, is_local=index >= self.hops)
            for index, gb_s in enumerate(self.gb_s)
        ]
        layers = {own.node: part for own, part in zip(offers, self.parts, strict=True)}
        memory = MemoryModel(model, WORKLOAD)
        return decode_tok_s(memory, choose_split(memory, offers, "manual", layers=layers))


# What speed.yaml was fitted to. Active bytes of mixtures of experts are active parameters times bytes per weight.
FITTED = (
    Run("Qwen2.5-7B Q4_K_M, M2 Ultra", 92, 4.68, 28, (800,), (28,)),
    Run("Qwen2.5-7B Q4_K_M, M2 Ultra + GB10", 53, 4.68, 28, (273, 800), (9, 19), 1),
    Run("Qwen2.5-72B Q4_K_M, M2 Ultra", 11, 47.4, 80, (800,), (80,)),
    Run("Qwen2.5-72B Q4_K_M, M2 Ultra + GB10", 6, 47.4, 80, (273, 800), (25, 55), 1),
    Run("MiniMax-M2.5 REAP Q8_0, 2 Strix Halo", 15.5, 10.6, 62, (256, 256), (31, 31), 1),
    Run("MiniMax-M2.5 REAP Q4_K_M, Strix Halo", 28.7, 6.0, 62, (256,), (62,)),
    Run("MiniMax-M2.5 REAP Q4_K_M, 2 Strix Halo", 26.7, 6.0, 62, (256, 256), (31, 31), 1),
    Run("Qwen3.5-397B-A17B Q4_K_XL, 2 Strix Halo", 12.2, 9.4, 60, (256, 256), (30, 30), 1),
    Run("Kimi K2.5 Q2, 4 Strix Halo", 8.3, 11.8, 61, (256, 256, 256, 256), (15, 15, 15, 16), 3),
    Run("Qwen3-VL-30B-A3B Q5_K_M, MI50 + RTX 3050 + RTX 4070", 51.5, 2.34, 48, (1024, 192, 504), (32, 4, 12), 2),
    Run("Qwen3.6-35B-A3B Q8_0, V100 + 2 R9700", 62, 3.2, 40, (900, 640, 640), (14, 13, 13)),
    Run("Qwen3-Coder-Next-80B Q8_K_XL, 2 Strix Halo", 30.2, 3.5, 48, (256, 256), (24, 24), 1),
    Run("Qwen3-30B-A3B Q4_K_M, Strix Halo", 86.1, 2.0, 48, (256,), (48,)),
)
# What it was not: defilantech/LLMKube issue 1423, llama.cpp pull requests 26284 and 4766.
HELD_OUT = (
    Run("Qwen 27B Q4_K_M, GB10", 12.83, 16.5, 64, (273,), (64,)),
    Run("Qwen 27B Q4_K_M, 2 GB10", 12.42, 16.5, 64, (273, 273), (32, 32), 1),
    Run("Llama 8B Q4_K_M, RX 7900 XTX", 105.8, 4.7, 32, (960,), (32,)),
    Run("Llama 7B Q4_0, P40", 56.8, 3.8, 32, (346,), (32,)),
)


@pytest.mark.parametrize("run", [*FITTED, *HELD_OUT], ids=lambda run: run.name)
def test_published_runs_are_estimated_within_a_factor(run: Run) -> None:
    assert run.tok_s / 1.6 < run.estimated_tok_s() < run.tok_s * 1.6


@pytest.mark.parametrize(("runs", "factor"), [(FITTED, 1.3), (HELD_OUT, 1.2)])
def test_the_typical_error_is_small(runs: tuple[Run, ...], factor: float) -> None:
    errors = [log(run.estimated_tok_s() / run.tok_s) for run in runs]
    assert exp(fmean(error**2 for error in errors) ** 0.5) < factor
    assert abs(fmean(errors)) < log(1.2)


def split_of(memory: MemoryModel, *offers: Offer, strategy: Strategy = "memory") -> Split:
    return choose_split(memory, offers, strategy)


def test_the_ceiling_is_what_bandwidth_alone_allows() -> None:
    model = model_header("llama31-8b-Q4_K_M")
    memory = MemoryModel(model, WORKLOAD)
    expected = estimate(memory, split_of(memory, offer("a", 40 * GIB, gb_s=1000)))
    read_bytes = model.active_bytes_per_token - model.shared_bytes
    assert expected.decode_ceiling_tok_s == pytest.approx(1000e9 / read_bytes)
    assert 0 < (expected.decode_tok_s or 0) < 1000e9 / read_bytes


def test_of_experts_only_those_in_use_are_read() -> None:
    model = model_header("qwen3-30b-a3b-Q4_K_M")
    memory = MemoryModel(model, WORKLOAD)
    expected = estimate(memory, split_of(memory, offer("a", 40 * GIB, gb_s=1000)))
    assert expected.decode_ceiling_tok_s is not None
    assert expected.decode_ceiling_tok_s > 5 * 1000e9 / model.total_bytes


def test_the_parts_add_up_and_the_largest_is_named() -> None:
    memory = MemoryModel(even_header(32), replace(WORKLOAD, cpu_layers=1))
    split = split_of(memory, offer("slow", 12 * GIB, gb_s=100), offer("fast", 12 * GIB, gb_s=2000))
    time = TokenTime(memory, 0)
    parts = list(time_parts(split, time))
    expected = estimate(memory, split)
    assert 1 / sum(part.seconds for part in parts) == expected.decode_tok_s
    assert expected.bound_by == "memory bandwidth of slow/CUDA0"
    assert {part.cause for part in parts} >= {"memory bandwidth of the head's CPU", "hops between devices"}


def test_small_models_over_many_hops_are_bound_by_them() -> None:
    memory = MemoryModel(even_header(8, layer_mib=5), WORKLOAD)
    split = split_of(memory, *(offer(name, 2 * GIB, gb_s=1000) for name in "abcd"))
    assert estimate(memory, split).bound_by == "hops between devices"


def test_a_slower_network_makes_decoding_slower() -> None:
    memory = MemoryModel(even_header(32), WORKLOAD)
    figures = [
        decode_tok_s(memory, split_of(memory, *(offer(name, 12 * GIB, gb_s=500, link=link) for name in "ab")))
        for link in (Link(10, 0.1), Link(1, 0.5), Link(0.1, 5))
    ]
    assert figures == sorted(figures, reverse=True)
    assert len(set(figures)) == 3


def test_a_longer_context_takes_longer_and_a_window_bounds_it() -> None:
    memory = MemoryModel(even_header(4), Workload(context=131072))
    assert TokenTime(memory, 100_000).read_bytes(0, 5) > TokenTime(memory, 0).read_bytes(0, 5)
    sliding = header([layer(GIB, is_sliding=True)] * 4)
    windowed = MemoryModel(sliding, Workload(context=131072))
    depths = [TokenTime(windowed, depth).read_bytes(0, 5) for depth in (0, 50_000, 100_000)]
    assert depths[0] < depths[1] == depths[2]


def test_a_token_reads_the_cache_of_its_own_sequence_alone() -> None:
    workload = Workload(context=65536, slots=4)
    memory = MemoryModel(even_header(4), workload)
    cache = memory.device_memory(0, 5, pipelined=False).kv_bytes
    read = [TokenTime(memory, depth).read_bytes(0, 5) for depth in (0, 65536)]
    assert read[1] - read[0] == cache // 4


def test_everything_on_the_cpu_has_an_estimate_too() -> None:
    memory = MemoryModel(even_header(32), WORKLOAD)
    expected = estimate(memory, choose_split(memory, [], "memory"))
    assert expected.bound_by == "memory bandwidth of the head's CPU"
    assert expected.decode_tok_s is not None
    assert expected.load_s is not None


def test_loading_is_unknown_where_the_network_is() -> None:
    memory = MemoryModel(even_header(32), WORKLOAD)
    assert estimate(memory, split_of(memory, offer("a", 30 * GIB))).load_s is None
    assert estimate(memory, split_of(memory, offer("a", 30 * GIB, link=Link(10)))).load_s is not None
    assert estimate(memory, split_of(memory, offer("a", 30 * GIB, is_local=True))).load_s is not None


@pytest.mark.parametrize(("model_gib", "published_s"), [(138, 193), (205, 288)])
def test_published_loading_times_are_met(model_gib: int, published_s: float) -> None:
    """Two Strix Halo over USB4 with 9.4 Gbit/s, half of the model remote."""
    memory = MemoryModel(header([layer(model_gib * GIB // 60)] * 60), WORKLOAD)
    split = split_of(memory, offer("a", 120 * GIB, link=Link(9.4)), offer("b", 120 * GIB, is_local=True))
    assert estimate(memory, split).load_s == pytest.approx(published_s, rel=0.1)


# --- bandwidth of devices -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("description", "gb_s"),
    [
        ("NVIDIA GeForce RTX 3090", 936),
        ("NVIDIA GeForce RTX 3090 Ti", 1008),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", 576),
        ("NVIDIA GeForce RTX 4070 Ti SUPER", 672),
        ("NVIDIA GeForce RTX 4070 SUPER", 504),
        ("NVIDIA GeForce RTX 3050 Laptop GPU", 192),
        ("NVIDIA GeForce RTX 2070", 448),
        ("NVIDIA GB10", 273),
        ("NVIDIA A100-SXM4-80GB", 1935),
        ("NVIDIA A100-PCIE-40GB", 1555),
        ("NVIDIA H100 80GB HBM3", 3350),
        ("NVIDIA H100 PCIe", 2000),
        ("NVIDIA L40S", 864),
        ("Tesla V100-SXM2-32GB", 900),
        ("Tesla P40", 346),
        ("NVIDIA RTX A6000", 768),
        ("NVIDIA RTX PRO 4000 Blackwell SFF Edition", 432),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 1792),
        ("AMD Radeon RX 7900 XTX (RADV NAVI31)", 960),
        ("AMD Radeon(TM) RX 7900 XT", 800),
        ("AMD Instinct MI60 / MI50", 1024),
        ("AMD Radeon AI PRO R9700", 640),
        ("Radeon 8060S Graphics (RADV GFX1151)", 256),
        ("AMD Radeon(TM) 8060S Graphics", 256),
        ("Microsoft Direct3D12 (AMD Radeon RX 6800 XT)", 512),
        ("AMD Radeon Pro Vega II Duo", 1024),
        ("Apple M2 Ultra", 800),
        ("Apple M4", 120),
        ("Intel(R) Arc(TM) A770 Graphics", 512),
        ("Intel(R) Arc(TM) B580 Graphics", 456),
    ],
)
def test_devices_are_known_by_their_description(description: str, gb_s: float) -> None:
    assert known_bandwidth_gb_s(offer("a", GIB, description=description)) == gb_s


@pytest.mark.parametrize(
    "description",
    ["", "AMD Radeon Graphics", "llvmpipe (LLVM 15.0.6, 256 bits)", "RTX 40900", "Apple M20", "(((", "\x00"],
)
def test_other_devices_are_not_known(description: str) -> None:
    assert known_bandwidth_gb_s(offer("a", GIB, description=description)) is None


def test_the_users_figure_wins() -> None:
    own = offer("a", GIB, description="NVIDIA GeForce RTX 3090", gb_s=700)
    assert bandwidth_gb_s(own) == 700


@pytest.mark.parametrize("backend", ["cuda", "rocm", "vulkan", "metal", "sycl", "cpu", None, "new"])
def test_an_unknown_device_is_reckoned_low(backend: str | None) -> None:
    own = offer("a", GIB, backend=backend)
    assert bandwidth_gb_s(own) == unknown_bandwidth_gb_s(backend) <= 200


@pytest.mark.parametrize(
    ("description", "unified"),
    [
        ("Apple M3 Max", True),
        ("NVIDIA GB10", True),
        ("AMD Radeon(TM) Graphics", True),
        ("NVIDIA GeForce RTX 3090", False),
    ],
)
def test_devices_that_share_the_cpus_memory_are_known(description: str, unified: bool) -> None:
    assert is_unified(offer("a", GIB, description=description)) is unified
