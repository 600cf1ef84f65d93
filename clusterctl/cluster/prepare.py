"""`plan`: the way to a plan without changing anything."""

from __future__ import annotations

from clusterctl.cluster.examine import demand_fitness, examine
from clusterctl.cluster.known_faults import demand_no_known_fault
from clusterctl.cluster.model_file import read_models
from clusterctl.cluster.plan import Plan, make_plan
from clusterctl.cluster.session import session
from clusterctl.config.inventory import Inventory
from clusterctl.config.recipe import Recipe
from clusterctl.errors import raise_all
from clusterctl.model import Link


async def prepare_plan(inventory: Inventory, recipe: Recipe, *, allow_skew: bool) -> Plan:
    """Look at the nodes, judge them, measure the network, read the models' headers and return the plan.

    Raises:
        ClusterctlError: whatever would keep `up` from starting.
    """
    async with session(inventory) as opened:
        raise_all(list(opened.unreachable.values()))
        examination = await examine(opened, inventory, recipe, links=True)
        demand_fitness(examination, allow_skew=allow_skew)
        head = examination.facts[inventory.head.name]
        models = await read_models(opened.nodes[head.node], recipe, head.files)
    ways = examination.ways.links
    links = {node: Link.measured(way.mbit_s, way.round_trip_ms) for node, way in ways.items()}
    plan = make_plan(inventory, recipe, examination.facts, models, links)
    demand_no_known_fault(plan.known_faults, inventory.head.name)
    return plan
