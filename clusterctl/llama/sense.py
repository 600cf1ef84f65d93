"""Whether a head computes sense or garbage, told by its own probabilities of texts that any model can continue.

A worker with a broken backend raises no error: it returns wrong numbers, and the answers may even look fluent.
What is asked, and how it is judged, is data in sense.yaml.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from statistics import fmean

from clusterctl.data import read_data


class Verdict(StrEnum):
    """Sane and broken are certain; doubtful is everything in between, and what can't be told. It is not sane."""

    SANE = "sane"
    BROKEN = "broken"
    DOUBTFUL = "doubtful"


@dataclass(frozen=True, slots=True)
class Passage:
    """A text that is read, and how any model continues it."""

    given: str
    expected: str


@dataclass(frozen=True, slots=True)
class Sense:
    """The verdict, its reason in words, and the log-probability of each expected token (natural logarithm)."""

    verdict: Verdict
    detail: str
    logprobs: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Questions:
    """What to ask: the passages, and how many of the most probable tokens to ask for."""

    passages: tuple[Passage, ...]
    candidates: int


@dataclass(frozen=True, slots=True)
class _Limits:
    worst: float
    sane: float
    broken: float
    equal: float
    differs_on_average: float
    differs_at_any: float


def questions() -> Questions:
    """Return what to ask a head."""
    return _data()[0]


def expected_logprob(candidates: Mapping[int, float | None], token: int) -> float | None:
    """Return the log-probability of `token`, or the most that it can be if it is not among the candidates.

    `None` if a candidate has no number: the head computes what is none (JSON has no NaN, so it comes as null).
    """
    numbers = [number for number in candidates.values() if number is not None and not math.isnan(number)]
    if not candidates or len(numbers) < len(candidates):
        return None
    known = candidates.get(token)
    return max(min(numbers) if known is None else known, _data()[1].worst)


def judge(logprobs: Sequence[float | None], reference: Sequence[float] | None = None) -> Sense:
    """Judge the log-probabilities of the expected tokens.

    `reference` holds those of the same model and build on one node: whoever differs from it is broken, even if
    the numbers look well.
    """
    known = tuple(number for number in logprobs if number is not None)
    if len(known) < len(logprobs):
        return Sense(Verdict.BROKEN, "it computes probabilities that are no numbers", known)
    if not known:
        return Sense(Verdict.DOUBTFUL, "it gives no probabilities")
    if reference is not None and len(reference) == len(known):
        return _compare(known, reference)
    return _judge_alone(known)


def _judge_alone(logprobs: tuple[float, ...]) -> Sense:
    limits, mean = _data()[1], fmean(logprobs)
    said = f"mean log-probability {mean:.3f} of {len(logprobs)} tokens that any model can foretell"
    if mean >= limits.sane:
        return Sense(Verdict.SANE, said, logprobs)
    if mean <= limits.broken:
        return Sense(Verdict.BROKEN, f"{said}; a sound head gives at least {limits.sane:g}", logprobs)
    return Sense(
        Verdict.DOUBTFUL, f"{said}; most models give at least {limits.sane:g}, garbage {limits.broken:g}", logprobs
    )


def _compare(logprobs: tuple[float, ...], reference: Sequence[float]) -> Sense:
    limits = _data()[1]
    differences = [abs(one - other) for one, other in zip(logprobs, reference, strict=True)]
    mean, largest = fmean(differences), max(differences)
    said = f"{mean:.4f} on average and {largest:.4f} at most from this model on one node"
    if largest <= limits.equal:
        return Sense(Verdict.SANE, f"the same log-probabilities as on one node, to {largest:.4f}", logprobs)
    if mean > limits.differs_on_average or largest > limits.differs_at_any:
        return Sense(Verdict.BROKEN, f"its log-probabilities are {said}", logprobs)
    return Sense(Verdict.SANE, f"log-probabilities {said}, as devices of different kinds are", logprobs)


@cache
def _data() -> tuple[Questions, _Limits]:
    raw = read_data("clusterctl.llama", "sense.yaml")
    passages = tuple(Passage(row["given"], row["expected"]) for row in raw["passages"])
    differs = raw["differs"]
    limits = _Limits(raw["worst"], raw["sane"], raw["broken"], raw["equal"], differs["mean"], differs["any"])
    return Questions(passages, raw["candidates"]), limits
