"""`recover --bisect`: which worker spoils what the cluster computes, told by leaving one out at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace

from clusterctl.cluster.bringup import Options
from clusterctl.cluster.steps import Tell
from clusterctl.cluster.up import Brought, bring_up
from clusterctl.config.inventory import Inventory
from clusterctl.config.recipe import Recipe
from clusterctl.errors import ComputesNonsense, Degraded, PlanDoesNotFit
from clusterctl.model import Outcome, Step


@dataclass(frozen=True, slots=True)
class Bisected:
    """The worker without which the cluster computes sense; `None` if it did so with all of them."""

    culprit: str | None
    brought: Brought


async def bisect(inventory: Inventory, recipe: Recipe, options: Options, tell: Tell) -> Bisected:
    """Bring the cluster up whole, then without one worker after the other, until it computes sense.

    What is found to compute sense is left running.

    Raises:
        Degraded: if it computes nonsense without any one of them; nothing runs then.
        ClusterctlError: if the cluster can't be brought up for another reason.
    """
    anew = replace(options, replace=True)
    try:
        return Bisected(None, await bring_up(inventory, recipe, anew, tell))
    except ComputesNonsense as error:
        tell(Step("whole cluster", Outcome.FAILED, detail=error.message))
    for worker in inventory.workers:
        others = tuple(node for node in inventory.nodes if node.name != worker.name)
        try:
            brought = await bring_up(inventory.model_copy(update={"nodes": others}), recipe, anew, tell)
        except (ComputesNonsense, PlanDoesNotFit) as error:
            tell(Step("without", Outcome.FAILED, worker.name, detail=error.message.partition("\n")[0]))
            continue
        tell(Step("without", Outcome.DONE, worker.name, detail="computes sense"))
        return Bisected(worker.name, brought)
    raise Degraded(
        "no single worker is to blame: it computes nonsense, or does not fit, without any one of them",
        node=inventory.head.name,
        hint="suspect the head itself, the model's file, or more than one worker",
    )
