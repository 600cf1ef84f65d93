"""Timed answers and kept runs to reckon with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clusterctl.bench.stream import Answer, Arrival, Timings
from clusterctl.measurements import (
    CLUSTER_ARM,
    BenchReport,
    Change,
    Comparison,
    Hardware,
    Load,
    NodeHardware,
    Placement,
    Run,
    Settings,
    SkippedArm,
    Spread,
)


def answer(
    times_s: Sequence[float],
    *,
    began_s: float = 0.0,
    prompt: int = 100,
    timings: Timings | None = None,
) -> Answer:
    """An answer with one token at each of `times_s`; without `timings`, the head agrees to the microsecond."""
    arrivals = tuple(Arrival(at_s, number + 1) for number, at_s in enumerate(times_s))
    agreeing = Timings(0, prompt, (times_s[0] - began_s) * 1000, len(times_s), (times_s[-1] - times_s[0]) * 1000)
    return Answer(began_s, arrivals, times_s[-1], timings or agreeing)


def spread(median: float, *, part: float = 0.02, count: int = 5) -> Spread:
    """A spread that reaches `part` of the median to both sides."""
    return Spread(median, median * (1 - part), median * (1 + part), count)


def run(
    loads: Mapping[int, Mapping[str, Spread]] | None = None,
    *,
    text: str = "x",
    name: str | None = None,
    arm: str = CLUSTER_ARM,
    recipe: str = "qwen3",
    build: str = "b11434 (7e4c0a9)",
) -> Run:
    """A run with figures by number of clients; `text` stands wherever a node's own words may."""
    figures = loads or {1: {"decode_tok_s": spread(20.0)}}
    return Run(
        at="2026-11-30T02:25:11+00:00",
        name=name,
        arm=arm,
        cluster="homelab",
        recipe=recipe,
        clusterctl="0.1.0",
        build=build,
        slots=2,
        context_per_slot=4096,
        plan=(Placement("strix1", "ROCm0", 16), Placement("rtx", "CUDA0", 15)),
        hardware=Hardware("0123456789ab", (NodeHardware("strix1", "linux", "x86_64", (f"ROCm0: {text}",)),)),
        settings=Settings(512, 128, 5, 1),
        loads=tuple(Load(clients, each) for clients, each in figures.items()),
    )


def bench_report(text: str = "x") -> BenchReport:
    """Two arms, a third that was skipped, and a comparison; `text` stands wherever outside text may."""
    figures = {
        name: spread(12.5)
        for name in ("prefill_tok_s", "decode_tok_s", "head_decode_tok_s", "head_prefill_tok_s", "request_s")
    }
    one = run({1: figures, 4: figures}, text=text, recipe=text, build=text)
    alone = run({1: {"decode_tok_s": spread(25.0)}}, text=text, arm="alone")
    changes = (Change("decode_tok_s", 1, spread(12.5), spread(25.0), 0.5, "worse"),)
    return BenchReport(
        (alone, one),
        (SkippedArm("alone, 8 slots", f"no room {text}"),),
        (Comparison(CLUSTER_ARM, f"alone {text}", changes, (f"build: {text}",)),),
        f"/home/ops/{text}",
    )
