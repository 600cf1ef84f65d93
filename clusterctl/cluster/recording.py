"""What `check --json` adds to its report, so that `plan --facts` can plan from it without the cluster."""

from __future__ import annotations

from dataclasses import replace

from clusterctl.cluster.examine import Examination, check_report
from clusterctl.cluster.facts import NodeFacts
from clusterctl.cluster.model_document import model_document
from clusterctl.cluster.model_file import Models, read_models
from clusterctl.cluster.session import Session
from clusterctl.config.inventory import Inventory
from clusterctl.config.recipe import Recipe
from clusterctl.errors import ClusterctlError
from clusterctl.llama.flags import needed_options
from clusterctl.llama.model_parts import part_names
from clusterctl.model import Problem, Severity
from clusterctl.reports import CheckReport, NodeReport


async def look_at_models(
    opened: Session, inventory: Inventory, recipe: Recipe, examination: Examination
) -> Models | None:
    """Return the headers of the recipe's models, `None` if their files are not all there.

    Raises:
        ClusterctlError: as `up` does, if they can't be read.
    """
    head = examination.facts.get(inventory.head.name)
    paths = [recipe.model.path, *([recipe.draft.path] if recipe.draft and recipe.draft.path else [])]
    if head is None or not all(head.files.get(part) for path in paths for part in part_names(path)):
        return None
    return await read_models(opened.nodes[head.node], recipe, head.files)


def with_unread_model(inventory: Inventory, examination: Examination, error: ClusterctlError) -> Examination:
    """Add to the head's problems why the models can't be read."""
    problem = Problem("model-unreadable", Severity.ERROR, error.message, error.hint or "")
    return examination.with_problems(inventory.head.name, [problem])


def recorded_report(inventory: Inventory, examination: Examination, models: Models | None) -> CheckReport:
    """Return the report of `check` with what planning needs of the nodes and, if they are known, of the models."""
    report = check_report(inventory, examination)
    nodes = tuple(
        _with_facts(node, examination.facts[node.name], for_planning=models is not None)
        if node.reachable
        else node
        for node in report.nodes
    )
    if models is None:
        return replace(report, nodes=nodes)
    draft = None if models.draft is None else model_document(models.draft)
    return replace(report, nodes=nodes, model=model_document(models.model), draft=draft)


def _with_facts(report: NodeReport, facts: NodeFacts, *, for_planning: bool) -> NodeReport:
    flags = facts.flags or facts.worker_flags
    return replace(
        report,
        boot_id=facts.observation.system.boot_id,
        home=facts.observation.system.home,
        memory=facts.memory,
        cache_free_mib=facts.cache.free_mib,
        options=needed_options(flags) if flags and for_planning else None,
    )
