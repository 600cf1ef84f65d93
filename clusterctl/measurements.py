"""What `bench` measured: the lines that it keeps and the documents of `bench --json`. Unknown is null.

A figure is known by its name in `FIGURES` wherever it is stored, compared or shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

CLUSTER_ARM = "cluster"


@dataclass(frozen=True, slots=True)
class Figure:
    """How to read a figure: what it is called on screen, its unit, and whether more of it is better."""

    title: str
    unit: str
    more_is_better: bool


FIGURES: Mapping[str, Figure] = MappingProxyType(
    {
        # As one client sees it: prompt tokens over the time to the first token, whatever the time went into.
        "prefill_tok_s": Figure("prefill", "tok/s", True),
        # As one client sees it: tokens after the first over the time since the first.
        "decode_tok_s": Figure("decode", "tok/s", True),
        # From opening a connection to the first token, a wait for a free slot included.
        "first_token_s": Figure("first token", "s", False),
        # Between two tokens of one answer: the median, and what 19 of 20 stay below.
        "inter_token_ms": Figure("token gap", "ms", False),
        "inter_token_p95_ms": Figure("token gap p95", "ms", False),
        "request_s": Figure("whole request", "s", False),
        # All clients together: tokens decoded over the time until the last client has its answer.
        "throughput_tok_s": Figure("throughput", "tok/s", True),
        # The same two rates from the head's own `timings`.
        "head_prefill_tok_s": Figure("prefill by the head", "tok/s", True),
        "head_decode_tok_s": Figure("decode by the head", "tok/s", True),
        # Drafted tokens that the model accepted, 0 to 1.
        "draft_acceptance": Figure("accepted drafts", "", True),
    }
)


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of `count` samples, and the range they lie in."""

    median: float
    lowest: float
    highest: float
    count: int


@dataclass(frozen=True, slots=True)
class Load:
    """What so many clients at the same time measured, by figure; a figure that can't be told is left out."""

    concurrency: int
    figures: Mapping[str, Spread]

    @property
    def head_difference(self) -> float | None:
        """How far our median decode rate is from the head's own, as a part of it; `None` if one is unknown."""
        ours, heads = self.figures.get("decode_tok_s"), self.figures.get("head_decode_tok_s")
        return ours.median / heads.median - 1 if ours and heads and heads.median else None


@dataclass(frozen=True, slots=True)
class Settings:
    """What was asked for. Warm-up rounds come before the repetitions and are not counted."""

    prompt_tokens: int
    decode_tokens: int
    repetitions: int
    warmup: int


@dataclass(frozen=True, slots=True)
class Placement:
    """A device of the plan that ran; `layers` counts the output layer too."""

    node: str
    device: str
    layers: int


@dataclass(frozen=True, slots=True)
class NodeHardware:
    """A node's machine and the devices that llama.cpp lists there, with their memory."""

    node: str
    os: str
    arch: str
    devices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Hardware:
    """The machines; the fingerprint is the same as long as machines and devices are."""

    fingerprint: str
    nodes: tuple[NodeHardware, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """One run of `bench`: what was measured, on what. One line of the file that keeps them.

    `arm` is `CLUSTER_ARM`, or what else `--control` has measured.
    """

    at: str
    name: str | None
    arm: str
    cluster: str
    recipe: str
    clusterctl: str
    build: str
    slots: int
    context_per_slot: int
    plan: tuple[Placement, ...]
    hardware: Hardware
    settings: Settings
    loads: tuple[Load, ...]
    warnings: tuple[str, ...] = ()
    estimate: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Change:
    """A figure now and in the base. Verdict: better | worse | within the spread | too few samples."""

    figure: str
    concurrency: int
    now: Spread
    base: Spread
    ratio: float
    verdict: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """A run beside its base; `differences` says in what the two were not the same."""

    run: str
    base: str
    changes: tuple[Change, ...]
    differences: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SkippedArm:
    """An arm of `--control` that could not be measured, and why."""

    arm: str
    reason: str


@dataclass(frozen=True, slots=True)
class BenchReport:
    """The answer of `bench`: one run, or one for each arm of `--control`."""

    runs: tuple[Run, ...]
    skipped: tuple[SkippedArm, ...]
    comparisons: tuple[Comparison, ...]
    kept_in: str

    @property
    def cluster_run(self) -> Run:
        """The run of the cluster itself."""
        return next(run for run in self.runs if run.arm == CLUSTER_ARM)
