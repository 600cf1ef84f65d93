"""The estimate of prefill: against published runs, and how it depends on devices, links and models."""

from __future__ import annotations

from dataclasses import asdict, replace
from math import exp, log
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.cluster.model_document import model_document, model_of
from clusterctl.llama.model_header import ModelHeader
from clusterctl.model import UNKNOWN_LINK, Link, Offer, Workload
from clusterctl.planning.estimate import estimate
from clusterctl.planning.memory import MemoryModel
from clusterctl.planning.prefill import PrefillSpeed, fp16_tflop_s, prefill_speed
from clusterctl.planning.split import choose_split
from tests.unit.memory_truth import model_header
from tests.unit.prefill_runs import FITTED, Run
from tests.unit.synthetic import GIB, even_header, expert_layer, header, layer, offer

RTX = "NVIDIA GeForce RTX 3090"
WORKLOAD = Workload(context=4096)
MIXTURE = header([expert_layer(10**9, 10**8, 0.6)] * 8, n_expert=128)


def speed_of(model: ModelHeader, *offers: Offer, workload: Workload = WORKLOAD) -> PrefillSpeed:
    """The speed with the layers in equal parts on the offers."""
    memory = MemoryModel(model, workload)
    layers = {own.node: model.n_layer // len(offers) for own in offers}
    return prefill_speed(memory, choose_split(memory, offers, "manual", layers=layers))


def one(tflop_s: float | None = 100, gb_s: float = 500, node: str = "a", link: Link = UNKNOWN_LINK) -> Offer:
    return offer(node, 500 * GIB, gb_s=gb_s, tflop_s=tflop_s, link=link)


# --- published runs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("run", FITTED, ids=lambda run: run.name)
def test_published_prompts_are_estimated_within_a_factor_and_below_the_ceiling(run: Run) -> None:
    assert run.tok_s / 2.3 < run.estimated_tok_s() < run.tok_s * 2.3
    ceiling = prefill_speed(*run.planned()).ceiling_tok_s
    assert ceiling is not None
    assert run.tok_s < ceiling


def test_the_typical_error_is_that_of_speed_yaml() -> None:
    errors = [log(run.estimated_tok_s() / run.tok_s) for run in FITTED]
    assert exp(fmean(error**2 for error in errors) ** 0.5) == pytest.approx(1.31, abs=0.005)
    assert exp(max(map(abs, errors))) == pytest.approx(2.2, abs=0.05)
    assert abs(fmean(errors)) < log(1.1)


# --- what is unknown stays unknown ----------------------------------------------------------------------


def test_without_the_arithmetic_of_one_device_prefill_is_unknown() -> None:
    assert speed_of(even_header(), one(), one(node="b", tflop_s=None)) == PrefillSpeed()


def test_with_layers_on_the_cpu_prefill_is_unknown() -> None:
    memory = MemoryModel(even_header(), replace(WORKLOAD, cpu_layers=1))
    assert prefill_speed(memory, choose_split(memory, [one()], "memory")) == PrefillSpeed()
    assert prefill_speed(memory, choose_split(memory, [], "memory")) == PrefillSpeed()


def test_a_model_described_before_weights_were_counted_has_no_prefill() -> None:
    document = model_document(even_header())
    layers = [asdict(each) for each in even_header().layers]
    for each in layers:
        del each["elements"], each["active_elements"]
    old = model_of({**document, "layers": layers})
    assert speed_of(old, one()) == PrefillSpeed()
    assert speed_of(model_of(document), one()) == speed_of(even_header(), one()) != PrefillSpeed()


def test_a_model_without_weights_has_no_ceiling() -> None:
    empty = replace(layer(0), elements=0, active_elements=0)
    assert speed_of(header([empty] * 4), one()).ceiling_tok_s is None


# --- devices --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("description", "tflop_s"),
    [
        (RTX, 142),
        ("NVIDIA GeForce RTX 3090 Ti", 160),
        ("NVIDIA GeForce RTX 4070 Ti SUPER", 176),
        ("NVIDIA GeForce RTX 4070 SUPER", 142),
        ("Tesla V100-PCIE-32GB", 112),
        ("NVIDIA L40S", 362),
        ("NVIDIA A10G", None),
        ("Tesla P40", None),
        ("AMD Radeon AI PRO R9700 (RADV GFX1201)", 191),
        ("AMD Radeon 8060S Graphics", 59.4),
        ("AMD Radeon Graphics", None),
        ("Apple M4 Max", None),
        ("", None),
    ],
)
def test_arithmetic_is_known_by_name_or_not_at_all(description: str, tflop_s: float | None) -> None:
    assert fp16_tflop_s(offer("a", GIB, description=description)) == tflop_s


def test_the_users_arithmetic_wins() -> None:
    assert fp16_tflop_s(offer("a", GIB, description=RTX, tflop_s=71)) == 71


def test_an_estimate_of_a_plan_has_both_figures_of_prefill() -> None:
    memory = MemoryModel(model_header("qwen3-30b-a3b-Q4_K_M"), WORKLOAD)
    split = choose_split(memory, [offer("a", 40 * GIB, description=RTX)], "memory")
    expected, speed = estimate(memory, split), prefill_speed(memory, split)
    assert (expected.prefill_tok_s, expected.prefill_ceiling_tok_s) == (speed.tok_s, speed.ceiling_tok_s)
    assert speed.tok_s is not None


def test_the_ceiling_is_the_slowest_device_at_full_rates() -> None:
    own = expert_layer(10**9, 10**9, 0.5)
    bound_by_arithmetic = speed_of(header([own] * 4), one(tflop_s=10, gb_s=10_000))
    assert bound_by_arithmetic.ceiling_tok_s == pytest.approx(10e12 / (2 * 4e9), rel=1e-6)
    bound_by_bandwidth = speed_of(header([own] * 4), one(tflop_s=10_000, gb_s=10))
    assert bound_by_bandwidth.ceiling_tok_s == pytest.approx(512 / (2e9 / 10e9), rel=1e-6)
    both = speed_of(header([own] * 4), one(tflop_s=10, gb_s=10_000), one(node="b", tflop_s=1000, gb_s=10_000))
    assert both.ceiling_tok_s == pytest.approx(10e12 / (2 * 2e9), rel=1e-6)


# --- models and micro-batches ---------------------------------------------------------------------------


def test_the_weights_of_a_real_model_are_counted_and_of_experts_those_in_use() -> None:
    mixture, dense = model_header("qwen3-30b-a3b-Q4_K_M"), model_header("llama31-8b-Q4_K_M")
    assert sum(each.elements or 0 for each in mixture.layers) / 1e9 == pytest.approx(29.9, abs=0.1)
    assert sum(each.active_elements or 0 for each in mixture.layers) / 1e9 == pytest.approx(2.73, abs=0.05)
    assert sum(each.elements or 0 for each in dense.layers) / 1e9 == pytest.approx(6.98, abs=0.01)
    assert all(each.elements == each.active_elements for each in dense.layers)


@pytest.mark.parametrize("model", [even_header(), MIXTURE], ids=["dense", "mixture of experts"])
def test_a_larger_micro_batch_is_faster(model: ModelHeader) -> None:
    speeds = [
        speed_of(model, one(), workload=Workload(context=8192, batch_physical=size)).tok_s or 0
        for size in (64, 512, 2048)
    ]
    assert speeds == sorted(speeds)
    assert speeds[0] < speeds[2]


def test_a_short_micro_batch_reads_only_the_experts_that_it_uses() -> None:
    few = speed_of(MIXTURE, one(tflop_s=1e6), workload=Workload(context=4096, batch_physical=2))
    all_of_them = speed_of(MIXTURE, one(tflop_s=1e6), workload=Workload(context=4096, batch_physical=10))
    # Ten tokens use all weights, and two a fifth of them: reading costs each token the same.
    assert few.ceiling_tok_s == pytest.approx(all_of_them.ceiling_tok_s, rel=0.01)


# --- properties -----------------------------------------------------------------------------------------

RATES = st.floats(0.1, 5000)
LINKS = st.builds(Link, st.none() | st.floats(0.001, 400), st.none() | st.floats(0, 200))
MODELS = st.sampled_from([even_header(8), MIXTURE])


@given(MODELS, RATES, RATES, RATES, RATES, LINKS)
def test_what_is_expected_never_exceeds_the_ceiling(
    model: ModelHeader, tflop_s: float, gb_s: float, other_tflop_s: float, other_gb_s: float, link: Link
) -> None:
    speed = speed_of(model, one(tflop_s, gb_s, link=link), one(other_tflop_s, other_gb_s, "b", link))
    assert speed.tok_s is not None
    assert speed.ceiling_tok_s is not None
    assert 0 < speed.tok_s <= speed.ceiling_tok_s


@given(MODELS, RATES, RATES, st.floats(1, 100), st.floats(1, 100))
def test_a_faster_device_never_makes_it_slower(
    model: ModelHeader, tflop_s: float, gb_s: float, more_arithmetic: float, more_bandwidth: float
) -> None:
    slow = speed_of(model, one(tflop_s, gb_s), one(node="b"))
    fast = speed_of(model, one(tflop_s * more_arithmetic, gb_s * more_bandwidth), one(node="b"))
    assert (slow.tok_s or 0) <= (fast.tok_s or 0)
    assert (slow.ceiling_tok_s or 0) <= (fast.ceiling_tok_s or 0)


@given(MODELS, st.floats(0.001, 400), st.floats(0, 200), st.floats(1, 1000), st.floats(0, 1000))
def test_a_slower_link_never_makes_it_faster(
    model: ModelHeader, gbit_s: float, round_trip_ms: float, times_slower: float, more_ms: float
) -> None:
    near = speed_of(model, one(link=Link(gbit_s, round_trip_ms)), one(node="b"))
    far = speed_of(model, one(link=Link(gbit_s / times_slower, round_trip_ms + more_ms)), one(node="b"))
    assert (far.tok_s or 0) <= (near.tok_s or 0)
