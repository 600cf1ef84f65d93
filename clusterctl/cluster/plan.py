"""From facts and a recipe to a plan: the split, the exact calls, the estimate and the advice. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clusterctl.cluster.facts import NodeFacts
from clusterctl.cluster.known_faults import as_advice, find_known_faults
from clusterctl.cluster.launch import expected_names, head_command, head_settings, worker_commands
from clusterctl.cluster.offers import offers_of
from clusterctl.config.inventory import Inventory
from clusterctl.config.recipe import Recipe
from clusterctl.llama.advisories import Advisory
from clusterctl.llama.model_header import ModelHeader
from clusterctl.llama.vendor_tools import parse_meminfo
from clusterctl.model import MIB, Advice, Estimate, Memory, NodeCommand, Offer, Split, Workload
from clusterctl.planning.advice import advise
from clusterctl.planning.estimate import estimate
from clusterctl.planning.memory import MemoryModel
from clusterctl.planning.split import choose_split
from clusterctl.reports import (
    CommandReport,
    DeviceReport,
    HostReport,
    PlanReport,
    UnusedReport,
)


@dataclass(frozen=True, slots=True)
class Plan:
    """What `up` will do, and why."""

    header: ModelHeader
    workload: Workload
    offers: tuple[Offer, ...]
    split: Split
    names: tuple[str, ...]
    workers: tuple[NodeCommand, ...]
    head: NodeCommand
    host_budget_bytes: int | None
    estimate: Estimate
    advice: tuple[Advice, ...]
    known_faults: tuple[Advisory, ...] = ()


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
        swa_full="--swa-full" in recipe.server.extra_args,
    )


def make_plan(inventory: Inventory, recipe: Recipe, facts: Mapping[str, NodeFacts], header: ModelHeader) -> Plan:
    """Choose the split and write out every call.

    Raises:
        PlanDoesNotFit: with what is missing and the least change that would fit.
        UsageError: for settings that can't be met.
    """
    workload = workload_of(recipe)
    offers = offers_of(inventory, facts)
    memory = MemoryModel(header, workload)
    head = facts[inventory.head.name]
    host_budget = _host_budget_bytes(inventory, head)
    split = choose_split(
        memory,
        offers,
        recipe.split.strategy,
        layers=recipe.split.layers,
        host_budget_bytes=host_budget,
    )
    names = expected_names(split)
    settings = head_settings(recipe, head, split, names)
    faults = find_known_faults(facts, head.node, header, split, settings, protocol=None)
    expected = estimate(memory, split)
    return Plan(
        header=header,
        workload=workload,
        offers=offers,
        split=split,
        names=names,
        workers=worker_commands(inventory, facts, split),
        head=head_command(inventory, recipe, head, settings),
        host_budget_bytes=host_budget,
        estimate=expected,
        advice=(*advise(memory, split, offers, expected), *as_advice(faults)),
        known_faults=faults,
    )


def _host_budget_bytes(inventory: Inventory, facts: NodeFacts) -> int | None:
    _, available_mib = parse_meminfo(facts.memory_text)
    if available_mib is None:
        return None
    reserve_mib = inventory.head.memory.reserve_mib or 0
    return max(0, available_mib - reserve_mib) * MIB


def plan_report(plan: Plan) -> PlanReport:
    """The plan as the document of `plan --json`; sizes in MiB."""
    return PlanReport(
        fits=True,
        strategy=plan.split.strategy,
        n_layer=plan.split.n_layer,
        devices=tuple(
            DeviceReport(
                node=share.offer.node,
                device=share.offer.device,
                rpc_name=name,
                layers=_range(share.first_layer, share.last_layer),
                output=share.has_output,
                budget_mib=_mib(share.offer.budget_bytes),
                reason=share.reason,
                **_sizes(share.memory),
            )
            for share, name in zip(plan.split.shares, plan.names, strict=True)
        ),
        host=HostReport(
            **_sizes(plan.split.host),
            budget_mib=None if plan.host_budget_bytes is None else _mib(plan.host_budget_bytes),
        ),
        unused=tuple(UnusedReport(offer.node, offer.device, why) for offer, why in plan.split.unused),
        device_order=plan.names,
        tensor_split=plan.split.tensor_split,
        commands=_commands((*plan.workers, plan.head)),
        estimate=plan.estimate,
        advice=plan.advice,
    )


def _commands(calls: Sequence[NodeCommand]) -> tuple[CommandReport, ...]:
    return tuple(CommandReport(call.node, call.role, call.argv, dict(call.env)) for call in calls)


def _range(first: int | None, last: int | None) -> tuple[int, int] | None:
    return None if first is None or last is None else (first, last)


def _sizes(memory: Memory) -> dict[str, float]:
    return {
        "model_mib": _mib(memory.model_bytes),
        "kv_mib": _mib(memory.kv_bytes),
        "compute_mib": _mib(memory.compute_bytes),
        "total_mib": _mib(memory.total_bytes),
    }


def _mib(size_bytes: int) -> float:
    return round(size_bytes / MIB, 2)
