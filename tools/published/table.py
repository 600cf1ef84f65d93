"""The table of docs/published.md: what was published, and what a plan says of the same machines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby

from clusterctl.errors import PlanDoesNotFit
from clusterctl.model import Split
from tools.published.experiments import ROOT, Experiment

FILE = ROOT / "docs" / "published.md"
HEAD = """# Published experiments, planned

Each row is a published experiment with a recipe and an inventory here, planned from recorded facts with no machine
at hand (`clusterctl plan --facts`). Devices stand in device order: workers first, the head's own last. The planned
layers count the output layer as one. Estimates are of decoding at short context, and of prefill of a long prompt;
the ratios are estimate over published.

"""
COLUMNS = (
    "recipe",
    "devices",
    "published split",
    "planned layers",
    "published decode",
    "estimate",
    "ratio",
    "published prefill",
    "estimate",
    "ratio",
    "note",
)
NOT_RUN = ("not run", "", "")
FOOT = """
What is behind the estimate, and how far it can be trusted, is said in clusterctl/planning/speed.yaml. The facts
are in recipes/facts; this file is written by `python -m tools.published`.
"""


def table_text(experiments: Iterable[Experiment]) -> str:
    """Return the whole text of the file."""
    rows = [COLUMNS, tuple("---" for _ in COLUMNS), *map(_row, experiments)]
    return HEAD + "".join(f"| {' | '.join(row)} |\n" for row in rows) + FOOT


def _row(experiment: Experiment) -> tuple[str, ...]:
    name = f"[{experiment.name}](../recipes/{experiment.name}.yaml)"
    parts = " : ".join(f"{part:g}" for part in experiment.split) if experiment.split else "not told"
    devices = [device["description"] for node in experiment.nodes.values() for device in node["devices"]]
    try:
        plan = experiment.plan()
    except PlanDoesNotFit as error:
        return (name, ", ".join(_counted(devices)), parts, "does not fit", *NOT_RUN, *NOT_RUN, _shortage(error))
    used = [share.offer.description for share in plan.split.shares]
    return (
        name,
        ", ".join(_counted(used)),
        parts,
        _layers(plan.split),
        *_speed(experiment.published_tok_s, plan.estimate.decode_tok_s),
        *_speed(experiment.published_prefill_tok_s, plan.estimate.prefill_tok_s),
        experiment.note,
    )


def _speed(published: float | None, estimate: float | None) -> tuple[str, str, str]:
    """What was published in tokens per second, the estimate, and how they compare."""
    return (
        "not told" if published is None else f"{published:g}",
        "" if estimate is None else f"{estimate:.1f}",
        "" if published is None or estimate is None else f"{estimate / published:.2f}",
    )


def _layers(split: Split) -> str:
    return " : ".join(str(slots) for slots in split.tensor_split)


def _counted(names: Iterable[str]) -> Iterator[str]:
    """Yield names, neighbours that are equal as one with their number."""
    for name, same in groupby(names):
        number = len(list(same))
        yield f"{number} × {name}" if number > 1 else name


def _shortage(error: PlanDoesNotFit) -> str:
    """How much is missing, without what it is made of and which device has how much."""
    return re.sub(r" \(.*?\)|:.*", "", error.message)
