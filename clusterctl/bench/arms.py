"""The arms of a fair comparison: one node alone, the same node with more slots, the cluster.

What a cluster gains over one node may be no more than what that node would gain from more slots; so the cluster
must be compared with both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clusterctl.bench.measure import Serving, demand_room
from clusterctl.cluster.plan import Plan
from clusterctl.cluster.prepare import prepare_plan
from clusterctl.config.inventory import Inventory, Node
from clusterctl.config.recipe import Recipe
from clusterctl.errors import ClusterctlError
from clusterctl.measurements import CLUSTER_ARM, Settings, SkippedArm
from clusterctl.model import Role

ALONE_ARM = "alone"
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Arm:
    """A cluster to bring up, measure and tear down."""

    name: str
    inventory: Inventory
    recipe: Recipe


@dataclass(frozen=True, slots=True)
class Arms:
    """What is measured, in this order, and what can't be."""

    arms: tuple[Arm, ...]
    skipped: tuple[SkippedArm, ...]


def more_slots_of(recipe: Recipe, concurrency: Sequence[int]) -> int:
    """The slots of the arm that has more of them: enough for every client, and twice the recipe's at least."""
    return max([2 * recipe.parallel, *concurrency])


async def choose_arms(
    inventory: Inventory, recipe: Recipe, settings: Settings, slots: int, *, allow_skew: bool
) -> Arms:
    """Find the node that the model fits on and that is expected to decode fastest, and set up all arms.

    Nothing of the cluster may run, since memory that it holds would not count as free. What keeps a node from
    serving alone is given as the reason why an arm is missing.

    Raises:
        ClusterctlError: if the cluster itself could not be brought up, or has no room for a request: found before
            an hour is spent on other arms.
    """
    demand_room(Serving(recipe.parallel, room_of(recipe, recipe.parallel)), settings)
    await prepare_plan(inventory, recipe, allow_skew=allow_skew)
    cluster = Arm(CLUSTER_ARM, inventory, recipe)
    plans, reasons = await _lone_plans(inventory, recipe, allow_skew=allow_skew)
    if not plans:
        why = "; ".join(f"{node}: {reason}" for node, reason in reasons.items())
        return Arms((cluster,), (SkippedArm(ALONE_ARM, f"the model serves on no node alone ({why})"),))
    fastest = max(plans, key=lambda name: plans[name].estimate.decode_tok_s or 0.0)
    single = alone(inventory, inventory.node(fastest))
    first = Arm(ALONE_ARM, single, without_workers(recipe, recipe.parallel))
    name = f"{ALONE_ARM}, {slots} slots"
    needed, room = settings.prompt_tokens + settings.decode_tokens, room_of(recipe, slots)
    if needed > room:
        reason = f"each of {slots} slots would have {room} tokens of context, and a request takes {needed}"
        return Arms((first, cluster), (SkippedArm(name, reason),))
    return Arms((first, Arm(name, single, without_workers(recipe, slots)), cluster), ())


async def _lone_plans(
    inventory: Inventory, recipe: Recipe, *, allow_skew: bool
) -> tuple[dict[str, Plan], dict[str, str]]:
    """The plan of each node that can serve alone, and the reason for each that can't."""
    plans, reasons = {}, {}
    lone = without_workers(recipe, recipe.parallel)
    for node in inventory.nodes:
        try:
            plans[node.name] = await prepare_plan(alone(inventory, node), lone, allow_skew=allow_skew)
        except ClusterctlError as error:
            reasons[node.name] = error.message.partition("\n")[0]
    return plans, reasons


def room_of(recipe: Recipe, slots: int) -> int:
    """The tokens of context that each of so many slots has, unless all share one cache."""
    return recipe.context if recipe.kv_cache.unified else recipe.context // slots


def alone(inventory: Inventory, node: Node) -> Inventory:
    """The inventory of one node that serves alone with all its devices.

    It keeps the cluster's name, so the lock and the records on that node are the cluster's own.
    """
    head = node.model_copy(update={"role": Role.HEAD, "serve_only": False})
    return inventory.model_copy(update={"nodes": (head,)})


def without_workers(recipe: Recipe, slots: int) -> Recipe:
    """The recipe for one node: split by memory, listening on loopback only, which needs no key."""
    split = recipe.split.model_copy(update={"strategy": "memory", "layers": None})
    server = recipe.server.model_copy(update={"host": LOOPBACK, "api_key_file": None})
    return recipe.model_copy(update={"split": split, "server": server, "parallel": slots})
