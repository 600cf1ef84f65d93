"""The published experiments of experiments.yaml: their facts as `plan --facts` reads them, and their plans."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from clusterctl.cluster.model_document import model_document
from clusterctl.cluster.plan import Plan
from clusterctl.cluster.recorded import plan_from_record, read_record
from clusterctl.config.inventory import Inventory
from clusterctl.config.loading import load_inventory, load_recipe
from clusterctl.config.recipe import Recipe
from tools.published.shapes import model_header

ROOT = Path(__file__).parents[2]
NOTE = (
    "Memory of the devices is what was published or what such a device usually shows. The models are shapes after"
    " public configurations, not read from their files. Written by `python -m tools.published`."
)
DEFAULT_TOLERANCE = 1.6


@dataclass(frozen=True)
class Experiment:
    """One published experiment. `split` is each device's part as published, in device order."""

    name: str
    inventory: Inventory
    recipe: Recipe
    model: str
    draft: str | None
    nodes: Mapping[str, Mapping[str, Any]]
    split: Sequence[float] | None
    tolerance: float
    note: str
    is_prefill_comparable: bool

    @property
    def facts_file(self) -> Path:
        """Where its facts are kept."""
        return ROOT / "recipes" / "facts" / f"{self.name}.json"

    @property
    def published_tok_s(self) -> float | None:
        """Decoded tokens per second as published; `None` for what was never run."""
        return self.recipe.expect.get("decode_tok_s")

    @property
    def published_prefill_tok_s(self) -> float | None:
        """Tokens of a prompt per second as published; `None` where they were not."""
        return self.recipe.expect.get("prefill_tok_s")

    def facts_text(self) -> str:
        """Return the facts as the text of their file."""
        document: dict[str, Any] = {
            "note": NOTE,
            "nodes": [{"name": name, **facts} for name, facts in self.nodes.items()],
            "model": model_document(model_header(self.model, self.recipe.model.path)),
        }
        if self.draft and self.recipe.draft:
            document["draft"] = model_document(model_header(self.draft, str(self.recipe.draft.path)))
        return "\n".join(_lines(document)) + "\n"

    def plan(self) -> Plan:
        """Plan from the facts; raises `PlanDoesNotFit`."""
        file = self.facts_file
        return plan_from_record(self.inventory, self.recipe, read_record(file.read_text("utf-8"), str(file)))


def experiments() -> tuple[Experiment, ...]:
    """Return all experiments, in the order of their file."""
    rows = yaml.safe_load(Path(__file__).with_name("experiments.yaml").read_text("utf-8"))
    return tuple(_experiment(name, row) for name, row in rows.items())


def _experiment(name: str, row: Mapping[str, Any]) -> Experiment:
    inventory = load_inventory(ROOT / "inventory" / f"{row['inventory']}.yaml", {})
    return Experiment(
        name=name,
        inventory=inventory,
        recipe=load_recipe(ROOT / "recipes" / f"{name}.yaml", {}, inventory),
        model=row["model"],
        draft=row.get("draft"),
        nodes=row["nodes"],
        split=row.get("split"),
        tolerance=row.get("tolerance", DEFAULT_TOLERANCE),
        note=row.get("note", ""),
        is_prefill_comparable=row.get("is_prefill_comparable", True),
    )


def _lines(value: object, indent: str = "", end: str = "") -> Iterator[str]:
    """Yield JSON with every map on one line, but for those that hold a list of maps."""
    if isinstance(value, dict) and any(_is_table(item) for item in value.values()):
        yield f"{indent}{{"
        for number, (key, item) in enumerate(value.items(), 1):
            comma = "," if number < len(value) else ""
            first, *rest = _lines(item, f"{indent} ", comma)
            yield f"{indent} {json.dumps(key)}: {first.lstrip()}"
            yield from rest
        yield f"{indent}}}{end}"
    elif isinstance(value, list) and _is_table(value):
        yield "["
        for number, item in enumerate(value, 1):
            yield from _lines(item, f"{indent} ", "," if number < len(value) else "")
        yield f"{indent}]{end}"
    else:
        yield f"{indent}{json.dumps(value)}{end}"


def _is_table(value: object) -> bool:
    """Whether a value is best read over several lines: a list of maps, or a map that holds one."""
    if isinstance(value, dict):
        return any(_is_table(item) for item in value.values())
    return isinstance(value, list) and len(value) > 1 and all(isinstance(item, dict) for item in value)
