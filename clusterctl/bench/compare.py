"""A run beside another, or beside published or estimated figures. Pure.

A difference counts only where the two ranges do not touch: what lies within the spread of repetitions is noise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from clusterctl.errors import UsageError
from clusterctl.measurements import CLUSTER_ARM, FIGURES, Change, Comparison, Load, Run, Spread

LAST, EXPECT, ESTIMATE = "last", "expect", "estimate"
RESERVED = (LAST, EXPECT, ESTIMATE)
# Fewer repetitions have no spread to speak of.
LEAST_SAMPLES = 3
# What the head says of itself is shown, but what clients see is compared.
COMPARED = tuple(name for name in FIGURES if not name.startswith("head_"))


def find_bases(kept: Sequence[Run], words: Iterable[str], recipe: str | None) -> dict[str, Run]:
    """Return the kept run that each word means: the newest for `last`, else the newest of that name.

    Of another recipe, or of an arm other than the cluster, none is taken; without a recipe, any counts.

    Raises:
        UsageError: if there is none, with the names that are known.
    """
    own = [run for run in kept if run.arm == CLUSTER_ARM and recipe in (None, run.recipe)]
    return {word: _newest(own, word) for word in words if word not in (EXPECT, ESTIMATE)}


def compare_all(
    run: Run, words: Iterable[str], bases: Mapping[str, Run], expected: Mapping[str, float]
) -> Iterator[Comparison]:
    """Compare a run with everything that was asked for, in that order."""
    for word in words:
        if word == EXPECT:
            yield compare_targets(run, expected, "what the recipe expects")
        elif word == ESTIMATE:
            yield compare_targets(run, run.estimate, "the plan's estimate")
        else:
            base = bases[word]
            yield compare_runs(run, base, f"{base.name or 'the last run'} of {base.at}")


def compare_arms(runs: Sequence[Run]) -> Iterator[Comparison]:
    """Compare the cluster with every other arm."""
    cluster = next(run for run in runs if run.arm == CLUSTER_ARM)
    return (compare_runs(cluster, run, run.arm) for run in runs if run is not cluster)


def compare_runs(run: Run, base: Run, title: str) -> Comparison:
    """Compare two runs where they had as many clients."""
    loads = {load.concurrency: load for load in base.loads}
    pairs = [(load, loads[load.concurrency]) for load in run.loads if load.concurrency in loads]
    changes = tuple(change for now, then in pairs for change in _changes(now, then))
    return Comparison(run.arm, title, changes, tuple(_differences(run, base, has_pairs=bool(pairs))))


def compare_targets(run: Run, targets: Mapping[str, float], title: str) -> Comparison:
    """Compare with figures for one client that come without a spread: published, or estimated."""
    load = next((load for load in run.loads if load.concurrency == 1), None)
    known = {name: Spread(value, value, value, LEAST_SAMPLES) for name, value in targets.items()}
    changes = tuple(_changes(load, Load(1, known))) if load else ()
    compared = {change.figure for change in changes}
    missing = [f"{name} is not measured" for name in targets if name not in compared and load]
    if not targets:
        missing = ["there is no figure to compare with"]
    elif load is None:
        missing = ["its figures are for 1 client, and that was not measured: add --concurrency 1"]
    return Comparison(run.arm, title, changes, tuple(missing))


def _newest(runs: Sequence[Run], word: str) -> Run:
    found = [run for run in runs if word in (LAST, run.name)]
    if found:
        return found[-1]
    names = ", ".join(dict.fromkeys(run.name for run in runs if run.name)) or "none yet"
    raise UsageError(
        "no earlier run is kept for this" if word == LAST else f"no run named `{word}` is kept for this",
        hint=f"known names are: {names}; `clusterctl bench --name NAME` keeps one",
    )


def _changes(now: Load, base: Load) -> Iterator[Change]:
    for figure in COMPARED:
        if figure in now.figures and figure in base.figures:
            yield _change(figure, now.concurrency, now.figures[figure], base.figures[figure])


def _change(figure: str, concurrency: int, now: Spread, base: Spread) -> Change:
    ratio = round(now.median / base.median, 3) if base.median else 0.0
    return Change(figure, concurrency, now, base, ratio, _verdict(figure, now, base))


def _verdict(figure: str, now: Spread, base: Spread) -> str:
    if min(now.count, base.count) < LEAST_SAMPLES:
        return "too few samples"
    if now.lowest <= base.highest and base.lowest <= now.highest:
        return "within the spread"
    return "better" if (now.median > base.median) == FIGURES[figure].more_is_better else "worse"


def _differences(run: Run, base: Run, *, has_pairs: bool) -> Iterator[str]:
    """What was not the same in both runs, and may explain their figures."""
    if not has_pairs:
        yield "the runs have no number of clients in common"
    aspects = (
        ("recipe", run.recipe, base.recipe),
        ("build", run.build, base.build),
        ("prompt tokens", run.settings.prompt_tokens, base.settings.prompt_tokens),
        ("decoded tokens", run.settings.decode_tokens, base.settings.decode_tokens),
        ("slots", run.slots, base.slots),
        ("context of a slot", run.context_per_slot, base.context_per_slot),
        ("plan", _plan_text(run), _plan_text(base)),
        ("machines", run.hardware.fingerprint, base.hardware.fingerprint),
        ("clusterctl", run.clusterctl, base.clusterctl),
    )
    for aspect, now, then in aspects:
        if now != then:
            yield f"{aspect}: {now}, against {then}"


def _plan_text(run: Run) -> str:
    return ", ".join(f"{place.node}/{place.device} {place.layers}" for place in run.plan) or "the head's CPU"
