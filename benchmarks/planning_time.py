"""How long planning takes: the split of a large model over many devices, and the answer when it does not fit.

Run from the root of the repository: python -m benchmarks.planning_time
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median

from clusterctl.errors import PlanDoesNotFit
from clusterctl.model import Offer, Workload
from clusterctl.planning.advice import advise
from clusterctl.planning.estimate import estimate
from clusterctl.planning.memory import MemoryModel
from clusterctl.planning.split import choose_split
from tests.unit.memory_truth import model_header

ROUNDS = 7
GIB = 1024**3
WORKLOAD = Workload(context=32768, slots=2, kv_unified=True)
# Devices and layers; the model is one real layer pattern, repeated.
SIZES = ((2, 32), (4, 64), (8, 96), (16, 128))


def main() -> None:
    print(f"{'devices':>7} {'layers':>6} {'memory':>10} {'speed':>10} {'no fit':>10} {'advice':>10}")
    for devices, layers in SIZES:
        times = " ".join(f"{time_ms:>7.1f} ms" for time_ms in times_ms(devices, layers))
        print(f"{devices:>7} {layers:>6} {times}")


def times_ms(devices: int, layers: int) -> tuple[float, ...]:
    memory = sized_model(layers)
    offers = cluster(memory, devices)
    return (
        median_ms(lambda: choose_split(memory, offers, "memory")),
        median_ms(lambda: choose_split(memory, offers, "speed")),
        median_ms(lambda: refuse(memory, offers)),
        median_ms(lambda: advice(memory, offers)),
    )


def sized_model(layers: int) -> MemoryModel:
    header = model_header("qwen25-72b-Q4_K_M")
    repeated = (header.layers * (layers // header.n_layer + 1))[:layers]
    return MemoryModel(replace(header, layers=repeated), WORKLOAD)


def cluster(memory: MemoryModel, devices: int) -> list[Offer]:
    """Devices of unlike sizes and speeds, which the model fills to four fifths, buffers aside."""
    whole = memory.device_memory(0, memory.header.n_layer + 1, pipelined=True)
    sizes = [2 + number % 3 for number in range(devices)]
    unit = (whole.model_bytes + whole.kv_bytes) / 0.8 / sum(sizes)
    return [
        Offer(
            node=f"node{number}",
            device="CUDA0",
            description="",
            backend="cuda",
            rpc_endpoint=None if number == devices - 1 else f"10.0.0.{number + 1}:50052",
            budget_bytes=int(unit * size) + 2 * GIB,
            bandwidth_gb_s=200 + 97 * number % 800,
        )
        for number, size in enumerate(sizes)
    ]


def refuse(memory: MemoryModel, offers: Sequence[Offer]) -> None:
    try:
        choose_split(memory, [replace(offer, budget_bytes=offer.budget_bytes // 2) for offer in offers], "memory")
    except PlanDoesNotFit:
        return
    raise AssertionError("this model was to be too large")


def advice(memory: MemoryModel, offers: Sequence[Offer]) -> None:
    split = choose_split(memory, offers, "memory")
    advise(memory, split, offers, estimate(memory, split))


def median_ms(call: Callable[[], object]) -> float:
    times = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        call()
        times.append(1e3 * (time.perf_counter() - started))
    return median(times)


if __name__ == "__main__":
    main()
