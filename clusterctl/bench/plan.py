"""The plan that a running cluster was started with, read back from the records of its programs. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain

from clusterctl.cluster.facts import NodeFacts
from clusterctl.cluster.model_file import Models
from clusterctl.cluster.plan import choose_plan
from clusterctl.cluster.record import Process, Record
from clusterctl.cluster.running_head import argument_of
from clusterctl.config.inventory import Inventory
from clusterctl.config.recipe import Recipe
from clusterctl.measurements import Placement
from clusterctl.model import Role


def running_plan(head: Record, processes: Mapping[str, Process]) -> tuple[Placement, ...]:
    """Return the devices of a running cluster in device order, each with its layers.

    Empty if the records do not tell: a head on its CPU alone, or one that something else has started.
    """
    workers = [p.record for p in processes.values() if p.runs and p.record.role is Role.WORKER]
    by_endpoint = {f"{record.address}:{record.port}": record for record in workers}
    endpoints = _words(head, "--rpc")
    if not set(endpoints) <= by_endpoint.keys():
        return ()
    remote = list(chain.from_iterable(_devices_of(by_endpoint[endpoint]) for endpoint in endpoints))
    names = _words(head, "--device")
    devices = [*remote, *((head.node, name) for name in names[len(remote) :])]
    layers = _words(head, "--tensor-split")
    if len(devices) != len(layers) or not all(count.isdecimal() for count in layers):
        return ()
    return tuple(
        Placement(node, device, int(count)) for (node, device), count in zip(devices, layers, strict=True)
    )


def estimate_of(
    inventory: Inventory,
    recipe: Recipe,
    facts: Mapping[str, NodeFacts],
    models: Models,
    plan: tuple[Placement, ...],
) -> dict[str, float]:
    """Return the speeds that are estimated for the split that runs, by figure.

    The split is given by hand and the devices count as empty, for what fills them is this very cluster.

    Raises:
        PlanDoesNotFit: if the split does not fit by the planner's account.
    """
    empty = {name: _emptied(own) for name, own in facts.items()}
    expected = choose_plan(inventory, _by_hand(recipe, plan), empty, models).estimate
    speeds = {"decode_tok_s": expected.decode_tok_s, "prefill_tok_s": expected.prefill_tok_s}
    return {figure: speed for figure, speed in speeds.items() if speed is not None}


def _devices_of(worker: Record) -> Iterator[tuple[str, str]]:
    return ((worker.node, device) for device in _words(worker, "--device"))


def _words(record: Record, flag: str) -> list[str]:
    value = argument_of(record.argv, flag)
    return value.split(",") if value else []


def _emptied(facts: NodeFacts) -> NodeFacts:
    devices = None if facts.devices is None else tuple(replace(d, free_mib=d.total_mib) for d in facts.devices)
    memory = replace(facts.memory, available_mib=facts.memory.total_mib)
    return replace(facts, devices=devices, memory=memory)


def _by_hand(recipe: Recipe, plan: tuple[Placement, ...]) -> Recipe:
    """The output layer, which a split by hand does not count, is on the last device."""
    if not plan:
        return recipe
    layers = {f"{place.node}/{place.device}": place.layers for place in plan}
    layers[f"{plan[-1].node}/{plan[-1].device}"] -= 1
    used = {label: count for label, count in layers.items() if count}
    split = recipe.split.model_copy(update={"strategy": "manual", "layers": used})
    return recipe.model_copy(update={"split": split})
