"""`recover --bisect`: which worker spoils what the cluster computes, told by leaving one out at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace

from clusterctl.cluster.bringup import Options
from clusterctl.cluster.steps import Tell
from clusterctl.cluster.up import Brought, bring_up
from clusterctl.config.inventory import Inventory
from clusterctl.config.recipe import Recipe
from clusterctl.errors import ComputesNonsense, Degraded, PlanDoesNotFit, UsageError
from clusterctl.model import Outcome, Step


@dataclass(frozen=True, slots=True)
class Bisected:
    """The worker without which the cluster computes sense; `None` if it did so with all of them."""

    culprit: str | None
    brought: Brought


async def bisect(inventory: Inventory, recipe: Recipe, options: Options, tell: Tell) -> Bisected:
    """Bring the cluster up whole, then without one worker after the other, until it surely computes sense.

    What is found to compute sense is left running.

    Raises:
        UsageError: if no worker can be left out.
        Degraded: if it does not compute sense without any one of them; nothing runs then.
        ClusterctlError: if the cluster can't be brought up for another reason.
    """
    _demand_choice(inventory, recipe)
    anew = replace(options, replace=True, demands_sense=True)
    try:
        brought = await bring_up(inventory, recipe, anew, tell)
    except ComputesNonsense as error:
        tell(Step("with all workers", Outcome.FAILED, detail=error.message))
    else:
        tell(Step("with all workers", Outcome.DONE, detail="it computes sense"))
        return Bisected(None, brought)
    for worker in inventory.workers:
        others = tuple(node for node in inventory.nodes if node.name != worker.name)
        try:
            brought = await bring_up(inventory.model_copy(update={"nodes": others}), recipe, anew, tell)
        except (ComputesNonsense, PlanDoesNotFit) as error:
            tell(Step("without", Outcome.FAILED, worker.name, detail=error.message.partition("\n")[0]))
            continue
        tell(Step("without", Outcome.DONE, worker.name, detail="it computes sense"))
        return Bisected(worker.name, brought)
    raise Degraded(
        "no single worker is to blame: it does not surely compute sense, or does not fit, without any one of them",
        node=inventory.head.name,
        hint="suspect the head itself, the model's file, or more than one worker",
    )


def _demand_choice(inventory: Inventory, recipe: Recipe) -> None:
    if not inventory.workers:
        raise UsageError(
            "there is no worker to leave out",
            node=inventory.head.name,
            hint="the head computes alone: suspect its devices, their driver, or the model's file",
        )
    if recipe.split.strategy == "manual":
        raise UsageError(
            "the recipe's split gives layers to every worker by hand, so none can be left out",
            hint="let it be `split: {strategy: memory}` until the worker is found",
        )
