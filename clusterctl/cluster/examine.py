"""Looking at all nodes of a cluster and judging what was found: the start of `check`, `plan` and `up`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from clusterctl.cluster.endpoint import rpc_address
from clusterctl.cluster.facts import NodeFacts, probe
from clusterctl.cluster.preflight import gravest_first, judge_node
from clusterctl.cluster.session import Session, session
from clusterctl.cluster.sight import find_membership
from clusterctl.cluster.skew import judge_skew
from clusterctl.cluster.stated import stated_build
from clusterctl.cluster.ways import Ways, look_from_head
from clusterctl.config.inventory import Inventory, Node
from clusterctl.config.recipe import Recipe
from clusterctl.errors import BuildSkew, ClusterctlError, NodesFailed, StartFailed, raise_all
from clusterctl.llama.model_parts import part_names
from clusterctl.model import Problem, Role, Severity
from clusterctl.remote.fanout import Outcomes, on_all
from clusterctl.remote.transport import Transport
from clusterctl.reports import BuildReport, CheckReport, NodeReport, ProgramsReport, SkewReport


@dataclass(frozen=True, slots=True)
class Examination:
    """Facts of the nodes that answered, the errors of those that did not, and the judgement on both."""

    facts: Mapping[str, NodeFacts]
    failed: Mapping[str, ClusterctlError]
    skew: SkewReport
    problems: Mapping[str, tuple[Problem, ...]]
    ways: Ways

    @property
    def errors(self) -> list[tuple[str, Problem]]:
        """Every problem that stops `up`, with its node."""
        return [
            (node, problem)
            for node, problems in self.problems.items()
            for problem in problems
            if problem.severity is Severity.ERROR
        ]

    def with_problems(self, node: str, problems: Iterable[Problem]) -> Examination:
        """The same with more problems of one node, errors first."""
        return replace(self, problems={**self.problems, node: gravest_first((*self.problems[node], *problems))})


async def examine(
    opened: Session, inventory: Inventory, recipe: Recipe | None, *, links: bool = False
) -> Examination:
    """Probe every reachable node, one round trip each, and judge builds and problems.

    With `links`, one more round measures the way from the head to every worker that does not run yet.
    """
    known = {node.name: opened.nodes[node.name] for node in inventory.nodes if node.name in opened.nodes}
    looked = await on_all(known, lambda _, transport: _look(inventory, recipe, transport))
    return await _judge(opened, inventory, recipe, looked, links=links)


@asynccontextmanager
async def examined(
    inventory: Inventory, recipe: Recipe | None, *, links: bool = False
) -> AsyncIterator[tuple[Session, Examination]]:
    """Open a session and examine its nodes, each as soon as it is connected: `examine`, only sooner."""
    looks: dict[str, asyncio.Task[NodeFacts]] = {}

    def greet(name: str, transport: Transport) -> None:
        looks[name] = asyncio.create_task(_look(inventory, recipe, transport))

    try:
        async with session(inventory, greet=greet) as opened:
            looked = await on_all(looks, lambda _, look: look)
            yield opened, await _judge(opened, inventory, recipe, looked, links=links)
    finally:
        for look in looks.values():
            look.cancel()


async def _look(inventory: Inventory, recipe: Recipe | None, transport: Transport) -> NodeFacts:
    node = inventory.node(transport.node)
    is_head = node.role is Role.HEAD
    ports = ([recipe.server.port] if recipe else []) if is_head else [node.rpc.port]
    return await probe(transport, inventory, node, wanted_files(recipe) if is_head else (), ports)


async def _judge(
    opened: Session, inventory: Inventory, recipe: Recipe | None, looked: Outcomes[NodeFacts], *, links: bool
) -> Examination:
    ways = await look_from_head(opened, inventory, looked.done, links=links)
    problems = {
        name: (*judge_node(inventory, recipe, inventory.node(name), facts), *ways.problems(name))
        for name, facts in looked.done.items()
    }
    return Examination(
        facts=looked.done,
        failed={**opened.unreachable, **looked.failed},
        skew=judge_skew(inventory, looked.done, ways.protocols),
        problems=problems,
        ways=ways,
    )


def wanted_files(recipe: Recipe | None) -> tuple[str, ...]:
    """The files that the head must have: all parts of the model, the draft model, keys and certificate."""
    if recipe is None:
        return ()
    draft = part_names(recipe.draft.path) if recipe.draft and recipe.draft.path else ()
    tls = recipe.server.tls
    keys = (recipe.server.api_key_file, *((tls.key_file, tls.cert_file) if tls else ()))
    return (*part_names(recipe.model.path), *draft, *filter(None, keys))


def demand_fitness(examination: Examination, *, allow_skew: bool) -> None:
    """Raise what stands between these nodes and a cluster, gravest kind first; return nothing if all is well.

    Raises:
        NodeUnreachable: if a node could not be reached or understood.
        BuildSkew: if builds differ or can't be told, unless allowed.
        StartFailed: for every other error, all nodes' at once.
    """
    raise_all(list(examination.failed.values()))
    skew = skew_error(examination.skew)
    if skew is not None and not allow_skew:
        raise skew
    raise_all(
        [
            StartFailed(problem.message, node=node, hint=problem.hint or None)
            for node, problem in examination.errors
        ]
    )


def skew_error(skew: SkewReport) -> ClusterctlError | None:
    """The error that a skew report amounts to, or `None` for a match."""
    errors = [
        BuildSkew(f"{item.subject}: {item.reason}", node=item.node, hint=item.fix or None)
        for item in skew.evidence
        if item.verdict != "match"
    ]
    if not errors:
        return None
    return errors[0] if len(errors) == 1 else NodesFailed(errors)


def check_report(inventory: Inventory, examination: Examination) -> CheckReport:
    """The examination as the document of `check --json`."""
    ok = not (examination.failed or examination.errors) and examination.skew.status == "match"
    nodes = tuple(_node_report(inventory, node, examination) for node in inventory.nodes)
    return CheckReport(ok, examination.skew, nodes)


def _node_report(inventory: Inventory, node: Node, examination: Examination) -> NodeReport:
    facts = examination.facts.get(node.name)
    if facts is None:
        error = examination.failed[node.name]
        problem = Problem("unreachable", Severity.ERROR, error.message, error.hint or "")
        return NodeReport(node.name, node.role, reachable=False, problems=(problem,))
    address = rpc_address(inventory, node, facts) if node.role is Role.WORKER else None
    build = stated_build(facts)
    link = examination.ways.links.get(node.name)
    return NodeReport(
        name=node.name,
        role=node.role,
        reachable=True,
        os=facts.observation.system.os,
        arch=facts.observation.system.arch,
        build=BuildReport(build.tag, build.number, build.commit, build.version) if build else None,
        rpc_protocol=_protocol(inventory, node, examination),
        programs=ProgramsReport(
            facts.head_program[0] if facts.head_program else None,
            facts.worker_program.path if facts.worker_program else None,
        ),
        rpc_address=address if isinstance(address, str) else None,
        link_round_trip_ms=link.round_trip_ms if link else None,
        link_mbit_s=link.mbit_s if link else None,
        devices=facts.devices or (),
        cache_mib=facts.cache.used_mib,
        problems=examination.problems[node.name],
    )


def _protocol(inventory: Inventory, node: Node, examination: Examination) -> str | None:
    """What a running worker speaks: as it says itself, or said before the head took its only connection."""
    spoken = examination.ways.protocols.get(node.name)
    process = examination.facts[node.name].observation.process(node.name)
    if spoken is not None or process is None or not process.runs:
        return str(spoken) if spoken else None
    seen = {name: facts.observation for name, facts in examination.facts.items()}
    membership = find_membership(seen, inventory.head.name)
    return membership.protocol_of(node.name) if membership else None
