"""Planning without the cluster, from facts that `check --json` recorded or somebody wrote by hand.

The document is read into the types it was written from. By hand, a node needs no more than a name, its devices
and, for a worker, an address here or in the inventory. What can't be told then is left out of the plan, and said.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from pydantic import TypeAdapter, ValidationError

from clusterctl.cluster.cache import CacheDisk
from clusterctl.cluster.facts import NodeFacts
from clusterctl.cluster.known_faults import demand_no_known_fault
from clusterctl.cluster.model_document import faults_of, model_of
from clusterctl.cluster.model_file import Models
from clusterctl.cluster.observation import Observation, System
from clusterctl.cluster.plan import Plan, choose_plan, with_calls
from clusterctl.config.inventory import Inventory, Node
from clusterctl.config.recipe import Recipe
from clusterctl.errors import UsageError
from clusterctl.llama.flags import SERVER, WORKER, Flags
from clusterctl.llama.model_header import ModelHeader
from clusterctl.llama.model_parts import part_names
from clusterctl.model import Address, Advice, Build, HostMemory, Link, Program, Role, Severity
from clusterctl.reports import NodeReport

HOW_TO_RECORD = "record them with `clusterctl -i INVENTORY -r RECIPE check --json >FILE`"


@dataclass(frozen=True, slots=True)
class Recorded:
    """Recorded facts: nodes by name, and what is known of the models. `skew` is the verdict on the builds."""

    nodes: Mapping[str, NodeReport]
    model: ModelHeader | None = None
    draft: ModelHeader | None = None
    skew: str | None = None


def read_record(text: str, file: str) -> Recorded:
    """Read recorded facts; `file` is their name in errors. Keys that planning does not need are passed over.

    Raises:
        UsageError: for text that is no such document, with all faults of its nodes.
    """
    document = _map(_json(text, file), f"{file}: ")
    rows = document.get("nodes")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UsageError(f"{file}: `nodes` must be a list of maps", hint=HOW_TO_RECORD)
    try:
        complete = [{"role": "", "reachable": True, **row} for row in rows]
        nodes = TypeAdapter(tuple[NodeReport, ...]).validate_python(complete)
    except ValidationError as error:
        raise UsageError(f"{file}: {faults_of(error, 'nodes')}", hint=HOW_TO_RECORD) from error
    skew = document.get("skew")
    return Recorded(
        nodes={node.name: node for node in nodes},
        model=_model(document, "model", file),
        draft=_model(document, "draft", file),
        skew=str(skew.get("status")) if isinstance(skew, dict) else None,
    )


def plan_from_record(inventory: Inventory, recipe: Recipe, record: Recorded) -> Plan:
    """Plan as on the day of the record: the same plan that the nodes themselves would have led to.

    Raises:
        UsageError: if a node, its devices or a model is missing from the record.
        StartFailed: if the plan is known to fail.
        PlanDoesNotFit: as for a plan made on the nodes.
    """
    facts = {node.name: _facts(node, _recorded(node, record)) for node in inventory.nodes}
    nodes = record.nodes.items()
    links = {name: Link.measured(node.link_mbit_s, node.link_round_trip_ms) for name, node in nodes}
    plan = choose_plan(inventory, recipe, facts, _models(recipe, record), links)
    demand_no_known_fault(plan.known_faults, inventory.head.name)
    used = {inventory.head.name, *(share.offer.node for share in plan.split.shares)}
    mute = [
        node.name for node in inventory.nodes if node.name in used and not _is_callable(node, facts[node.name])
    ]
    if not mute:
        plan = with_calls(plan, inventory, recipe, facts)
    return replace(plan, advice=(*plan.advice, *_remarks(record, mute)))


def _json(text: str, file: str) -> object:
    try:
        return json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise UsageError(
            f"{file}:{error.lineno}:{error.colno}: no JSON: {error.msg}", hint=HOW_TO_RECORD
        ) from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{file}: no JSON that planning can read: {error}", hint=HOW_TO_RECORD) from error


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number")


def _map(value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UsageError(f"{where}must be a map", hint=HOW_TO_RECORD)
    return value


def _model(document: Mapping[str, Any], key: str, file: str) -> ModelHeader | None:
    if document.get(key) is None:
        return None
    try:
        return model_of(_map(document[key], ""))
    except UsageError as error:
        raise UsageError(f"{file}: {key}: {error.message}", hint=HOW_TO_RECORD) from error


def _models(recipe: Recipe, record: Recorded) -> Models:
    draft = recipe.draft.path if recipe.draft else None
    return Models(
        model=_the_model(recipe.model.path, record.model, "model"),
        draft=None if draft is None else _the_model(draft, record.draft, "draft model"),
    )


def _the_model(path: str, recorded: ModelHeader | None, what: str) -> ModelHeader:
    if recorded is None:
        raise UsageError(f"the facts say nothing of the {what} {path}", hint=HOW_TO_RECORD)
    if recorded.file != part_names(path)[0]:
        raise UsageError(
            f"the facts are of the {what} {recorded.file}, and the recipe has {path}", hint=HOW_TO_RECORD
        )
    return recorded


def _recorded(node: Node, record: Recorded) -> NodeReport:
    report = record.nodes.get(node.name)
    if report is None or not report.reachable:
        fault = "is not in the facts" if report is None else "could not be reached when the facts were recorded"
        raise UsageError(f"it {fault}", node=node.name, hint=HOW_TO_RECORD)
    if node.role is Role.WORKER:
        if not report.devices:
            raise UsageError("the facts list no devices of it", node=node.name, hint=HOW_TO_RECORD)
        if not (report.rpc_address or node.rpc.address):
            hint = "add `rpc_address` to the facts, or rpc.address to the inventory"
            raise UsageError("the facts give it no address", node=node.name, hint=hint)
    return report


def _facts(node: Node, report: NodeReport) -> NodeFacts:
    """The facts of a node as far as they are recorded; whatever planning does not look at is empty."""
    build, programs = report.build, report.programs
    system = System(
        os=report.os or "",
        arch=report.arch or "",
        hostname=report.name,
        user="",
        boot_id=report.boot_id or " ".join(node.machine),
        clock_s=0,
        home=report.home or "~",
        path="",
    )
    address = report.rpc_address or node.rpc.address
    paths = [programs.llama_server, programs.rpc_server] if programs else []
    options = report.options
    is_head = node.role is Role.HEAD
    return NodeFacts(
        node=node.name,
        role=node.role,
        observation=Observation(node.name, system, (), {}, {}, membership=None, lock=None),
        addresses=(Address(node.rpc.interface or "", address, 32),) if address else (),
        interfaces={},
        memory=report.memory or HostMemory(),
        programs=tuple(Program(path, "") for path in paths if path),
        version_text="",
        build=Build(build.number, build.commit, build.version) if build else None,
        flags=Flags(SERVER, options) if options is not None and is_head else None,
        worker_flags=Flags(WORKER, options) if options is not None and not is_head else None,
        devices=report.devices,
        devices_text="",
        library_commits=frozenset(),
        missing_libraries=(),
        files={},
        cache=CacheDisk(report.cache_mib, report.cache_free_mib),
    )


def _is_callable(node: Node, facts: NodeFacts) -> bool:
    """Whether the call of this node's program can be written out."""
    if node.role is Role.HEAD:
        return facts.head_program is not None and facts.flags is not None
    return facts.worker_program is not None and facts.worker_flags is not None


def _remarks(record: Recorded, mute: list[str]) -> Iterator[Advice]:
    if mute:
        missing = f"the facts name no program of llama.cpp with its options on {', '.join(mute)}"
        yield Advice("no-commands", f"the commands are left out: {missing}")
    if record.skew not in (None, "match"):
        yield Advice("recorded-skew", f"when the facts were recorded, the builds were no match: {record.skew}")
    for node in record.nodes.values():
        for problem in node.problems:
            if problem.severity is Severity.ERROR:
                message = f"{node.name}: {problem.message}; with this, `up` would refuse"
                yield Advice("recorded-problem", message)
