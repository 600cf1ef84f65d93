"""From timed answers to figures: a median and the range it stands in. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from statistics import median

from clusterctl.bench.stream import Answer
from clusterctl.measurements import Load, Spread

# More digits than this say nothing about a measurement.
SIGNIFICANT_DIGITS = 4


@dataclass(frozen=True, slots=True)
class Round:
    """The answers to one client each, asked for at the same time."""

    answers: tuple[Answer, ...]

    @property
    def seconds(self) -> float:
        """From the first request until the last client had its whole answer."""
        return max(answer.ended_s for answer in self.answers) - min(answer.began_s for answer in self.answers)


def prefill_tok_s(answer: Answer) -> float | None:
    """Prompt tokens over the time to the first token."""
    return _rate(answer.timings.prompt, first_token_s(answer))


def decode_tok_s(answer: Answer) -> float | None:
    """Tokens after the first event over the time since; `None` if all came at once."""
    first, last = answer.arrivals[0], answer.arrivals[-1]
    return _rate(last.tokens - first.tokens, last.at_s - first.at_s)


def first_token_s(answer: Answer) -> float:
    """Time from sending the request to the first token."""
    return answer.arrivals[0].at_s - answer.began_s


def inter_token_ms(answer: Answer) -> float | None:
    """The median time between two tokens."""
    gaps = _gaps_ms(answer)
    return median(gaps) if gaps else None


def inter_token_p95_ms(answer: Answer) -> float | None:
    """The time between two tokens that 19 of 20 stay below."""
    gaps = sorted(_gaps_ms(answer))
    return gaps[min(len(gaps) - 1, len(gaps) * 95 // 100)] if gaps else None


def request_s(answer: Answer) -> float:
    """Time from sending the request to the end of its answer."""
    return answer.ended_s - answer.began_s


def head_prefill_tok_s(answer: Answer) -> float | None:
    """The head's own prefill rate."""
    return _rate(answer.timings.prompt, answer.timings.prompt_ms / 1000)


def head_decode_tok_s(answer: Answer) -> float | None:
    """The head's own decode rate."""
    return _rate(answer.timings.predicted - 1, answer.timings.predicted_ms / 1000)


def draft_acceptance(answer: Answer) -> float | None:
    """The part of the drafted tokens that the model accepted; `None` if none were drafted."""
    timings = answer.timings
    return timings.accepted / timings.drafted if timings.drafted > 0 else None


OF_ANSWER: Mapping[str, Callable[[Answer], float | None]] = {
    function.__name__: function
    for function in (
        prefill_tok_s,
        decode_tok_s,
        first_token_s,
        inter_token_ms,
        inter_token_p95_ms,
        request_s,
        head_prefill_tok_s,
        head_decode_tok_s,
        draft_acceptance,
    )
}


def load_of(concurrency: int, rounds: Sequence[Round]) -> Load:
    """Sum up all rounds with so many clients."""
    answers = [answer for each in rounds for answer in each.answers]
    figures = {name: spread_of(map(function, answers)) for name, function in OF_ANSWER.items()}
    figures["throughput_tok_s"] = spread_of(
        _rate(sum(answer.timings.predicted for answer in each.answers), each.seconds) for each in rounds
    )
    return Load(concurrency, {name: spread for name, spread in figures.items() if spread is not None})


def spread_of(samples: Iterable[float | None]) -> Spread | None:
    """The spread of the samples that are known, `None` if there is none."""
    known = [sample for sample in samples if sample is not None and isfinite(sample)]
    if not known:
        return None
    return Spread(_rounded(median(known)), _rounded(min(known)), _rounded(max(known)), len(known))


def _gaps_ms(answer: Answer) -> list[float]:
    """The time per token of every event after the first; an event may carry several tokens."""
    return [
        (other.at_s - one.at_s) * 1000 / (other.tokens - one.tokens)
        for one, other in pairwise(answer.arrivals)
        if other.tokens > one.tokens
    ]


def _rate(count: int, seconds: float) -> float | None:
    return count / seconds if count > 0 and seconds > 0 else None


def _rounded(number: float) -> float:
    return float(f"{number:.{SIGNIFICANT_DIGITS}g}")
