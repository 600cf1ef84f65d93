"""`plan`: the way to a plan without changing anything."""

from __future__ import annotations

from clusterctl.cluster.examine import demand_fitness, examine
from clusterctl.cluster.facts import NodeFacts
from clusterctl.cluster.known_faults import demand_no_known_fault
from clusterctl.cluster.model_file import read_model
from clusterctl.cluster.plan import Plan, make_plan
from clusterctl.cluster.session import Session, session
from clusterctl.config.inventory import Inventory
from clusterctl.config.recipe import Recipe
from clusterctl.errors import raise_all
from clusterctl.llama.model_header import ModelHeader
from clusterctl.llama.model_parts import part_names


async def prepare_plan(inventory: Inventory, recipe: Recipe, *, allow_skew: bool) -> Plan:
    """Look at the nodes, judge them, read the model's header and return the plan.

    Raises:
        ClusterctlError: whatever would keep `up` from starting.
    """
    async with session(inventory) as opened:
        raise_all(list(opened.unreachable.values()))
        examination = await examine(opened, inventory, recipe)
        demand_fitness(examination, allow_skew=allow_skew)
        head = examination.facts[inventory.head.name]
        header = await read_header_of(opened, recipe, head)
    plan = make_plan(inventory, recipe, examination.facts, header)
    demand_no_known_fault(plan.known_faults, inventory.head.name)
    return plan


async def read_header_of(opened: Session, recipe: Recipe, head: NodeFacts) -> ModelHeader:
    """Read the header of the recipe's model on the head."""
    files = {part: head.files[part] for part in part_names(recipe.model.path)}
    return await read_model(opened.nodes[head.node], files)
