"""The phases of `up` before anything starts: look, clear what is left, judge, read the model, plan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from clusterctl.cluster.bringup import Bringup
from clusterctl.cluster.clearing import clear
from clusterctl.cluster.down import ending, observe_members
from clusterctl.cluster.enrolment import demand_wanted, forget
from clusterctl.cluster.examine import demand_fitness, examine
from clusterctl.cluster.known_faults import demand_no_known_fault
from clusterctl.cluster.model_file import read_models
from clusterctl.cluster.places import left_behind
from clusterctl.cluster.plan import make_plan
from clusterctl.cluster.sight import find_membership
from clusterctl.cluster.standing import Standing, inputs_digest, standing_of
from clusterctl.config.inventory import Inventory
from clusterctl.errors import Degraded, StartFailed, raise_all
from clusterctl.model import Outcome, Severity, Step
from clusterctl.reports import SkewReport


async def look(context: Bringup) -> Bringup:
    """Look at every node, and compare what runs with what is asked for."""
    examination = await examine(context.opened, context.inventory, context.recipe)
    raise_all(list(examination.failed.values()))
    if context.options.recovering:
        demand_wanted({name: facts.observation for name, facts in examination.facts.items()}, context.inventory)
    digest = inputs_digest(context.inventory, context.recipe, examination.facts)
    standing = standing_of(context.inventory, examination.facts, digest)
    if standing is Standing.SAME and context.options.replace:
        standing = Standing.OTHER
    if not context.options.replace:
        _refuse_to_replace(context.inventory, standing)
    return replace(context, examination=examination, digest=digest, standing=standing)


class RunsOtherwise(StartFailed):
    """The cluster runs, but from other files or another build than asked for."""


def _refuse_to_replace(inventory: Inventory, standing: Standing) -> None:
    if standing is Standing.OTHER:
        raise RunsOtherwise(
            "this cluster runs already, from another inventory, recipe or build",
            node=inventory.head.name,
            hint="`clusterctl up --replace` ends it and starts this one; `clusterctl status` shows it",
        )
    if standing is Standing.BROKEN:
        raise Degraded(
            "this cluster runs already, but not all of it",
            node=inventory.head.name,
            hint="`clusterctl recover` brings it back; `clusterctl status` shows what is missing",
        )


async def clear_remains(context: Bringup) -> Bringup:
    """End what runs, also on nodes that have left the inventory since."""
    seen = await observe_members(context.inventory, context.opened)
    with ending(context.opened):
        cleared = await clear(context.inventory, context.opened, seen, context.tell)
    if not context.options.recovering:
        cleared = replace(cleared, left=await forget(context.inventory, context.opened, seen, cleared.left))
    membership = find_membership(seen, context.inventory.head.name)
    if membership is not None:
        context = replace(context, former=left_behind(membership, context.inventory, seen, cleared.left))
    known = {node.name for node in context.inventory.nodes}
    raise_all([Degraded(reason, node=name) for name, reason in cleared.left.items() if name in known])
    for name, reason in cleared.left.items():
        # Not a node of this cluster any more, so it can't keep the others from starting.
        context.tell(Step("clear what is left", Outcome.WARNING, name, detail=reason))
        context.opened.unreachable.pop(name, None)
    context = replace(context, left=cleared.left)
    if not context.real:
        return replace(context, standing=Standing.NOTHING)
    examination = await examine(context.opened, context.inventory, context.recipe)
    return replace(context, examination=examination, standing=Standing.NOTHING)


async def judge(context: Bringup) -> Bringup:
    """Demand that builds and nodes are fit, and tell what is only unwise."""
    demand_fitness(context.looked, allow_skew=context.options.allow_skew)
    for warning in skew_warnings(context.looked.skew):
        context.tell(warning)
    for name, problems in context.looked.problems.items():
        for problem in problems:
            if problem.severity is Severity.WARNING:
                detail = f"{problem.message}; {problem.hint}"
                context.tell(Step(problem.code, Outcome.WARNING, name, detail=detail))
    return context


def skew_warnings(skew: SkewReport) -> Iterator[Step]:
    """Yield a warning for everything that is no match; whoever does not allow that never comes so far."""
    for item in skew.evidence:
        if item.verdict != "match":
            detail = "; ".join(filter(None, (f"{item.subject}: {item.verdict}: {item.reason}", item.fix)))
            yield Step("build-skew", Outcome.WARNING, item.node, detail=detail)


async def read_model(context: Bringup) -> Bringup:
    """Read the model's header on the head."""
    head = context.looked.facts[context.inventory.head.name]
    return replace(context, models=await read_models(context.head, context.recipe, head.files))


async def plan_split(context: Bringup) -> Bringup:
    """Give the devices their layers, from what was measured."""
    assert context.models is not None
    plan = make_plan(context.inventory, context.recipe, context.looked.facts, context.models)
    demand_no_known_fault(plan.known_faults, context.inventory.head.name)
    return replace(context, plan=plan)
