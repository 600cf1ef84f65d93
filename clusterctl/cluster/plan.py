"""From facts and a recipe to a plan: the split, the exact calls, the estimate and the advice. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from clusterctl.cluster.cache_room import cache_advice, demand_room
from clusterctl.cluster.draft import DraftPart, beside_draft, drafted_tokens, place_draft
from clusterctl.cluster.facts import NodeFacts
from clusterctl.cluster.known_faults import as_advice, find_known_faults
from clusterctl.cluster.launch import Settings, expected_names, head_command, head_settings, worker_commands
from clusterctl.cluster.model_file import Models
from clusterctl.cluster.offers import NO_LINKS, beside_host, offers_of, reserve_mib
from clusterctl.config.inventory import Inventory
from clusterctl.config.recipe import Recipe
from clusterctl.errors import PlanDoesNotFit
from clusterctl.llama.advisories import Advisory
from clusterctl.llama.arguments import option_of
from clusterctl.llama.model_header import ModelHeader
from clusterctl.model import MIB, Advice, Estimate, Link, NodeCommand, Offer, Split, Workload
from clusterctl.planning.advice import advise
from clusterctl.planning.assignment import fits_at_all
from clusterctl.planning.estimate import estimate
from clusterctl.planning.memory import MemoryModel
from clusterctl.planning.remedies import Fits
from clusterctl.planning.shortage import HeadDoesNotFit
from clusterctl.planning.slot_ranges import SlotRanges
from clusterctl.planning.split import choose_split


@dataclass(frozen=True, slots=True)
class Plan:
    """What `up` will do, and why. `head` is `None`, and `workers` empty, until the calls are written out."""

    models: Models
    workload: Workload
    offers: tuple[Offer, ...]
    split: Split
    names: tuple[str, ...]
    draft: DraftPart | None
    settings: Settings
    host_budget_bytes: int | None
    estimate: Estimate
    advice: tuple[Advice, ...]
    known_faults: tuple[Advisory, ...] = ()
    workers: tuple[NodeCommand, ...] = ()
    head: NodeCommand | None = None

    @property
    def header(self) -> ModelHeader:
        """The header of the model that is served."""
        return self.models.model


def workload_of(recipe: Recipe) -> Workload:
    """What a recipe costs in memory and time.

    `flash_attention: auto` ends as on wherever a device supports it (llama.cpp src/llama-context.cpp), and with
    an explicit `--parallel` the cache is not unified unless asked for (common/arg.cpp).
    """
    return Workload(
        context=recipe.context,
        slots=recipe.parallel,
        kv_unified=bool(recipe.kv_cache.unified),
        kv_type_k=recipe.kv_cache.k,
        kv_type_v=recipe.kv_cache.v,
        flash_attention=recipe.flash_attention != "off",
        batch_logical=recipe.batch.logical,
        batch_physical=recipe.batch.physical,
        cpu_layers=recipe.split.cpu_layers,
        swa_full="--swa-full" in map(option_of, recipe.server.extra_args),
        draft_tokens=drafted_tokens(recipe.draft),
    )


def make_plan(
    inventory: Inventory,
    recipe: Recipe,
    facts: Mapping[str, NodeFacts],
    models: Models,
    links: Mapping[str, Link] = NO_LINKS,
) -> Plan:
    """Choose the split and write out every call. `links` are the measured ways from the head to the workers.

    Raises:
        PlanDoesNotFit: with what is missing and the least change that would fit.
        UsageError: for settings that can't be met.
    """
    return with_calls(choose_plan(inventory, recipe, facts, models, links), inventory, recipe, facts)


def with_calls(plan: Plan, inventory: Inventory, recipe: Recipe, facts: Mapping[str, NodeFacts]) -> Plan:
    """Write out the calls of a plan, spelled as the nodes' own programs understand them.

    Raises:
        PlanDoesNotFit: if a worker's disk has no room for the cache that it is to keep.
        UsageError: for settings that a program does not know.
    """
    demand_room(inventory, facts, plan.split)
    return replace(
        plan,
        workers=worker_commands(inventory, facts, plan.split),
        head=head_command(inventory, recipe, facts[inventory.head.name], plan.settings),
    )


def choose_plan(
    inventory: Inventory,
    recipe: Recipe,
    facts: Mapping[str, NodeFacts],
    models: Models,
    links: Mapping[str, Link] = NO_LINKS,
) -> Plan:
    """Make a plan as far as it needs no program of llama.cpp: everything but the calls.

    Raises:
        PlanDoesNotFit: with what is missing and the least change that would fit.
        UsageError: for settings that can't be met.
    """
    head = facts[inventory.head.name]
    memory = MemoryModel(models.model, workload_of(recipe))
    room_for = partial(_room, inventory, recipe, facts, models, links=links)
    room = room_for(memory)
    split = _split(recipe, head.node, memory, room, partial(_fits, room_for))
    names = expected_names(split)
    settings = head_settings(recipe, head, split, names, draft_device=room.draft.device if room.draft else None)
    faults = find_known_faults(facts, head.node, models.model, split, settings, protocol=None)
    expected = estimate(memory, split)
    advice = _advice(recipe, memory, room, split, expected)
    return Plan(
        models=models,
        workload=memory.workload,
        offers=room.offers,
        split=split,
        names=names,
        draft=room.draft,
        settings=settings,
        host_budget_bytes=room.host_budget_bytes,
        estimate=expected,
        advice=(*advice, *cache_advice(inventory, facts, split), *as_advice(faults)),
        known_faults=faults,
    )


@dataclass(frozen=True, slots=True)
class _Room:
    """What there is for the model, beside the draft model: the devices' offers and the head's own memory."""

    offers: tuple[Offer, ...]
    host_budget_bytes: int | None
    draft: DraftPart | None


def _room(
    inventory: Inventory,
    recipe: Recipe,
    facts: Mapping[str, NodeFacts],
    models: Models,
    memory: MemoryModel,
    links: Mapping[str, Link],
) -> _Room:
    budget = _host_budget_bytes(inventory, facts[inventory.head.name])
    draft = None
    if recipe.draft and models.draft:
        draft = place_draft(inventory, recipe.draft, models.draft, memory.workload, facts)
        budget = None if budget is None else max(0, budget - draft.host.total_bytes)
    offers = offers_of(inventory, facts, links)
    # Before the draft model: what it takes of a device in the head's memory is no longer there for the process.
    offers = beside_host(inventory, facts, offers, _host_bytes(memory), budget)
    return _Room(beside_draft(offers, draft) if draft else offers, budget, draft)


def _fits(room_for: Callable[[MemoryModel], _Room], memory: MemoryModel) -> bool:
    """Whether a workload fits the room beside it: the head's process and the draft model take of the devices."""
    try:
        room = room_for(memory)
    except PlanDoesNotFit:
        return False
    return fits_at_all(SlotRanges(memory, room.host_budget_bytes), room.offers)


def _split(recipe: Recipe, head: str, memory: MemoryModel, room: _Room, fits: Fits) -> Split:
    try:
        return choose_split(
            memory,
            room.offers,
            recipe.split.strategy,
            layers=recipe.split.layers,
            host_budget_bytes=room.host_budget_bytes,
            fits=fits,
        )
    except HeadDoesNotFit as error:
        error.node = head
        raise


def _advice(
    recipe: Recipe, memory: MemoryModel, room: _Room, split: Split, expected: Estimate
) -> tuple[Advice, ...]:
    return advise(
        memory,
        split,
        room.offers,
        expected,
        load_mode=recipe.load_mode,
        has_draft=recipe.draft is not None,
        host_budget_bytes=room.host_budget_bytes,
    )


def _host_budget_bytes(inventory: Inventory, facts: NodeFacts) -> int | None:
    known = [mib for mib in (facts.memory.available_mib, facts.memory.allowed_mib) if mib is not None]
    return max(0, min(known) - reserve_mib(inventory.head)) * MIB if known else None


def _host_bytes(memory: MemoryModel) -> int:
    """What the head's own process needs at most, however many devices share the model."""
    return max(memory.host_memory(pipelined=pipelined).total_bytes for pipelined in (False, True))
