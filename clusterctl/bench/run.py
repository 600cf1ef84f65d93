"""One run of `bench`: find what serves, see what it is, measure it, and write down both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import httpx

from clusterctl import __version__
from clusterctl.bench.hardware import hardware_of
from clusterctl.bench.measure import Serving, demand_room, measure, read_serving
from clusterctl.bench.plan import estimate_of, running_plan
from clusterctl.cluster.examine import examine
from clusterctl.cluster.facts import NodeFacts
from clusterctl.cluster.failure import explaining
from clusterctl.cluster.head_api import HeadApi
from clusterctl.cluster.membership import parse_membership
from clusterctl.cluster.model_file import read_models
from clusterctl.cluster.readiness import demand_alive
from clusterctl.cluster.record import Record
from clusterctl.cluster.running_head import open_running_head, running_head
from clusterctl.cluster.session import Session, session
from clusterctl.cluster.standing import inputs_digest, processes_of
from clusterctl.cluster.steps import Tell, telling
from clusterctl.config.inventory import Inventory
from clusterctl.config.recipe import Recipe
from clusterctl.errors import ClusterctlError, NotReady, UsageError, raise_all
from clusterctl.llama.serving import Health
from clusterctl.measurements import CLUSTER_ARM, Load, Run, Settings


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a run is to do. `with_estimate` asks for the plan's estimate as well, which needs the recipe."""

    settings: Settings
    concurrency: tuple[int, ...]
    name: str | None = None
    arm: str = CLUSTER_ARM
    with_estimate: bool = False


@dataclass(frozen=True, slots=True)
class _Measured:
    """What came of asking the head."""

    serving: Serving
    loads: tuple[Load, ...]
    warnings: tuple[str, ...]


async def bench_running(inventory: Inventory, recipe: Recipe | None, wanted: Wanted, tell: Tell) -> Run:
    """Measure the cluster that runs.

    Raises:
        NotReady: if no head runs, or it is still loading.
        UsageError: if something else runs than the recipe says, or a request does not fit into a slot.
        StartFailed: if one of its programs dies meanwhile, with the likely cause.
        ClusterctlError: if the head refuses a request.
    """
    async with session(inventory) as opened:
        with telling(tell, "look at what runs"):
            examination = await examine(opened, inventory, recipe)
            raise_all(list(examination.failed.values()))
            facts = examination.facts
            head = running_head(facts[inventory.head.name].observation)
            _demand_recipe(inventory, recipe, facts, head)
        plan = running_plan(head, processes_of(facts))
        estimate: dict[str, float] = {}
        if wanted.with_estimate and recipe is not None:
            models = await read_models(opened.nodes[head.node], recipe, facts[head.node].files)
            estimate = estimate_of(inventory, recipe, facts, models, plan)
        measured = await _measure(opened, facts, head, wanted, tell)
    return Run(
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        name=wanted.name,
        arm=wanted.arm,
        cluster=inventory.cluster,
        recipe=recipe.name if recipe else _served_name(facts[head.node]),
        clusterctl=__version__,
        build=head.build,
        slots=measured.serving.slots,
        context_per_slot=measured.serving.context_per_slot,
        plan=plan,
        hardware=hardware_of(facts),
        settings=wanted.settings,
        loads=measured.loads,
        warnings=measured.warnings,
        estimate=estimate,
    )


def _demand_recipe(
    inventory: Inventory, recipe: Recipe | None, facts: Mapping[str, NodeFacts], head: Record
) -> None:
    """Figures are kept under a recipe's name, so they must be of that recipe."""
    if recipe is not None and head.inputs != inputs_digest(inventory, recipe, facts):
        raise UsageError(
            f"what runs was not started from recipe {recipe.name} and this inventory as they are now",
            hint="`clusterctl up --replace` starts it; without -r, whatever runs is measured",
        )


def _served_name(head: NodeFacts) -> str:
    membership = parse_membership(head.observation.membership)
    return membership.alias if membership else "unknown"


async def _measure(
    opened: Session, facts: Mapping[str, NodeFacts], head: Record, wanted: Wanted, tell: Tell
) -> _Measured:
    async with open_running_head(opened.nodes[head.node], head) as api:
        try:
            return await _ask(api, wanted, tell)
        except httpx.HTTPError as error:
            running = [name for name, process in processes_of(facts).items() if process.runs]
            async with explaining(opened.nodes, head.cluster):
                await demand_alive(opened.nodes, head.cluster, running)
            raise ClusterctlError(
                f"the connection to the head broke ({error or type(error).__name__})",
                node=head.node,
                hint="`clusterctl status` shows whether it still serves",
            ) from error


async def _ask(api: HeadApi, wanted: Wanted, tell: Tell) -> _Measured:
    health = await api.health()
    if health is not Health.OK:
        raise NotReady(f"the head does not serve yet: {health}", hint="`clusterctl status` shows when it does")
    serving = await read_serving(api.client)
    demand_room(serving, wanted.settings)
    busy = (await api.traffic()).slots_busy
    warnings = [f"{busy} of the head's slots were busy with something else"] if busy else []
    if (most := max(wanted.concurrency)) > serving.slots:
        warnings.append(f"{most} clients share {serving.slots} slots: some wait, and their wait counts")
    loads, oddities = await measure(api.client, wanted.settings, wanted.concurrency, tell)
    return _Measured(serving, loads, (*warnings, *oddities))
