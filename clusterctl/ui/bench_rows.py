"""What `bench` has to say, as plain words and rows: the same on a screen and in a Markdown file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clusterctl.measurements import FIGURES, BenchReport, Change, Comparison, Run, Spread
from clusterctl.ui.units import count

SHOWN = (
    "prefill_tok_s",
    "decode_tok_s",
    "first_token_s",
    "inter_token_ms",
    "request_s",
    "throughput_tok_s",
    "draft_acceptance",
)
CHANGE_HEADINGS = ("figure", "clients", "now", "base", "ratio", "verdict")


def load_headings(runs: Sequence[Run]) -> tuple[str, ...]:
    """Return the headings of the table of loads: only figures that something has measured."""
    return ("arm and clients", *map(figure_text, _measured(runs)))


def load_rows(runs: Sequence[Run]) -> Iterator[tuple[str, tuple[Spread | None, ...]]]:
    """Yield each load of each run: what it is, then its figures in the order of `load_headings`."""
    for run in runs:
        for load in run.loads:
            figures = tuple(load.figures.get(name) for name in _measured(runs))
            yield f"{run.arm}, {count(load.concurrency, 'client')}", figures


def change_row(change: Change) -> tuple[str, ...]:
    """Return a row of a comparison, in the order of `CHANGE_HEADINGS`."""
    return (
        figure_text(change.figure),
        str(change.concurrency),
        spread_text(change.now),
        spread_text(change.base),
        f"{change.ratio:.2f}x",
        change.verdict,
    )


def report_lines(report: BenchReport) -> Iterator[tuple[str, str]]:
    """Yield what was measured on what, as names and values; with several arms, what each of them was."""
    run = report.cluster_run
    asked = run.settings
    yield "recipe", f"{run.recipe} on {run.cluster}" + (f", kept as {run.name}" if run.name else "")
    yield (
        "asked for",
        (
            f"{asked.prompt_tokens} prompt tokens, {asked.decode_tokens} decoded, "
            f"{count(asked.repetitions, 'repetition')} after {count(asked.warmup, 'warm-up round')}"
        ),
    )
    yield "build", run.build
    yield "machines", f"{count(len(run.hardware.nodes), 'node')}, fingerprint {run.hardware.fingerprint}"
    for own in report.runs:
        yield own.arm, f"{count(own.slots, 'slot')} of {own.context_per_slot} tokens; {layers_text(own)}"


def layers_text(run: Run) -> str:
    """Return which device held how many layers."""
    placed = ", ".join(f"{place.node}/{place.device} {place.layers}" for place in run.plan)
    return f"layers: {placed}" if placed else "all layers on the head's CPU"


def head_lines(run: Run) -> Iterator[str]:
    """Yield, for each load, what the head's own timings say beside ours."""
    for load in run.loads:
        decode, prefill = (load.figures.get(name) for name in ("head_decode_tok_s", "head_prefill_tok_s"))
        if decode is None or prefill is None or load.head_difference is None:
            continue
        yield (
            f"{run.arm}, {count(load.concurrency, 'client')}: the head itself says prefill "
            f"{number_text(prefill.median)} tok/s, decode {number_text(decode.median)} tok/s, "
            f"which is {abs(load.head_difference):.1%} from ours"
        )


def comparison_title(comparison: Comparison) -> str:
    """Return what is compared with what."""
    return f"{comparison.run} against {comparison.base}"


def figure_text(name: str) -> str:
    """Return a figure's title with its unit; one that is not known keeps its name."""
    figure = FIGURES.get(name)
    return " ".join(filter(None, (figure.title, figure.unit))) if figure else name


def spread_text(spread: Spread | None) -> str:
    """Return `96.2 (95.8-97.0)`, or `-` for what was not measured; one value has no range."""
    if spread is None:
        return "-"
    middle, ends = number_text(spread.median), range_text(spread)
    return f"{middle} ({ends})" if ends else middle


def range_text(spread: Spread) -> str:
    """Return `95.8-97.0`, or nothing for a single value."""
    lowest, highest = number_text(spread.lowest), number_text(spread.highest)
    return f"{lowest}-{highest}" if spread.lowest != spread.highest else ""


def number_text(number: float) -> str:
    """Return three digits that count, as `0.0123`, `9.60`, `96.0` or `962`; whole numbers may have more."""
    return f"{number:.0f}" if abs(number) >= 99.95 else f"{number:#.3g}"


def _measured(runs: Sequence[Run]) -> list[str]:
    known = {name for run in runs for load in run.loads for name in load.figures}
    return [name for name in SHOWN if name in known]
