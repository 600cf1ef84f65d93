"""`up`: look, judge, plan, start, verify, launch, wait, ask. The list of phases at the end is the whole of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from clusterctl.cluster.bringup import Bringup, Options
from clusterctl.cluster.cache_check import drop_damaged_caches
from clusterctl.cluster.canary import demand_sense
from clusterctl.cluster.down import clear, observe_members
from clusterctl.cluster.enrolment import demand_wanted, forget
from clusterctl.cluster.examine import demand_fitness, examine
from clusterctl.cluster.head_api import Health
from clusterctl.cluster.known_faults import demand_no_known_fault, find_known_faults
from clusterctl.cluster.launch import endpoints_of, head_command, head_settings
from clusterctl.cluster.lock import holding
from clusterctl.cluster.model_file import read_models
from clusterctl.cluster.patience import Limits, load_deadline_s
from clusterctl.cluster.phases import Phase, run_phases
from clusterctl.cluster.places import left_behind
from clusterctl.cluster.plan import make_plan
from clusterctl.cluster.readiness import TITLE, demand_alive, demand_buffers, wait_until_serving
from clusterctl.cluster.references import reference_key
from clusterctl.cluster.rpc_probe import Hello
from clusterctl.cluster.running_head import access_of, open_running_head
from clusterctl.cluster.session import session
from clusterctl.cluster.sight import find_membership
from clusterctl.cluster.standing import Standing, inputs_digest, standing_of
from clusterctl.cluster.starting import Launch, start
from clusterctl.cluster.steps import Tell, telling
from clusterctl.cluster.stopping import stop_recorded
from clusterctl.cluster.verify import match_devices, see_devices, verify_worker
from clusterctl.config.inventory import Inventory
from clusterctl.config.recipe import Recipe
from clusterctl.errors import ComputesNonsense, Degraded, StartFailed, raise_all
from clusterctl.llama.sense import Verdict
from clusterctl.llama.wire import RpcProtocol
from clusterctl.model import Outcome, Severity, Step
from clusterctl.remote import commands
from clusterctl.remote.fanout import on_all
from clusterctl.reports import Access


@dataclass(frozen=True, slots=True)
class Brought:
    """What `up` did: whether anything changed, where the cluster serves, and what its clients need."""

    changed: bool
    url: str
    transcript: Sequence[str] = ()
    access: Access = field(default_factory=Access)


async def bring_up(
    inventory: Inventory, recipe: Recipe, options: Options, tell: Tell, *, dry: bool = False
) -> Brought:
    """Bring the cluster up, or find it as asked for and change nothing.

    Whatever this run started is undone, last first, if it fails or is interrupted.

    Raises:
        ClusterctlError: with the exit code of the contract for each way in which this can fail.
    """
    async with session(inventory, dry=dry) as opened:
        raise_all(list(opened.unreachable.values()))
        command = "recover" if options.recovering else "up"
        head = opened.nodes[inventory.head.name]
        async with holding(head, inventory.cluster, command, options.lock_token) as lease:
            opened.guard(lease.demand)
            begun = Bringup(inventory, recipe, options, opened, tell)
            done = await run_phases(PHASES, begun, tell)
        transcript = [f"{node}: {command.line()}" for node, command in opened.transcript]
        return Brought(done.fresh, done.url, transcript, access_of(done.head_record))


async def _look(context: Bringup) -> Bringup:
    examination = await examine(context.opened, context.inventory, context.recipe)
    raise_all(list(examination.failed.values()))
    if context.options.recovering:
        demand_wanted({name: facts.observation for name, facts in examination.facts.items()}, context.inventory)
    digest = inputs_digest(context.inventory, context.recipe, examination.facts)
    standing = standing_of(context.inventory, examination.facts, digest)
    if standing is Standing.SAME and context.options.replace:
        standing = Standing.OTHER
    if not context.options.replace:
        _refuse_to_replace(context.inventory, standing)
    return replace(context, examination=examination, digest=digest, standing=standing)


class RunsOtherwise(StartFailed):
    """The cluster runs, but from other files or another build than asked for."""


def _refuse_to_replace(inventory: Inventory, standing: Standing) -> None:
    if standing is Standing.OTHER:
        raise RunsOtherwise(
            "this cluster runs already, from another inventory, recipe or build",
            node=inventory.head.name,
            hint="`clusterctl up --replace` ends it and starts this one; `clusterctl status` shows it",
        )
    if standing is Standing.BROKEN:
        raise Degraded(
            "this cluster runs already, but not all of it",
            node=inventory.head.name,
            hint="`clusterctl recover` brings it back; `clusterctl status` shows what is missing",
        )


async def _clear(context: Bringup) -> Bringup:
    """End what runs, also on nodes that have left the inventory since."""
    seen = await observe_members(context.inventory, context.opened)
    cleared = await clear(context.inventory, context.opened, seen, context.tell)
    if not context.options.recovering:
        await forget(context.inventory, context.opened, seen, cleared.left)
    membership = find_membership(seen, context.inventory.head.name)
    if membership is not None:
        context = replace(context, former=left_behind(membership, context.inventory, cleared.left))
    known = {node.name for node in context.inventory.nodes}
    raise_all([Degraded(reason, node=name) for name, reason in cleared.left.items() if name in known])
    for name, reason in cleared.left.items():
        # Not a node of this cluster any more, so it can't keep the others from starting.
        context.tell(Step("clear what is left", Outcome.FAILED, name, detail=reason))
        context.opened.unreachable.pop(name, None)
    if not context.real:
        return replace(context, standing=Standing.NOTHING)
    examination = await examine(context.opened, context.inventory, context.recipe)
    return replace(context, examination=examination, standing=Standing.NOTHING)


async def _judge(context: Bringup) -> Bringup:
    demand_fitness(context.looked, allow_skew=context.options.allow_skew)
    for name, problems in context.looked.problems.items():
        for problem in problems:
            if problem.severity is Severity.WARNING:
                detail = f"{problem.message}; {problem.hint}"
                context.tell(Step(problem.code, Outcome.WARNING, name, detail=detail))
    return context


async def _read_model(context: Bringup) -> Bringup:
    head = context.looked.facts[context.inventory.head.name]
    return replace(context, models=await read_models(context.head, context.recipe, head.files))


async def _plan(context: Bringup) -> Bringup:
    assert context.models is not None
    plan = make_plan(context.inventory, context.recipe, context.looked.facts, context.models)
    demand_no_known_fault(plan.known_faults, context.inventory.head.name)
    return replace(context, plan=plan)


async def _enrol(context: Bringup) -> Bringup:
    """Written before anything starts, so that a lost run can be cleared from any machine."""
    output = await context.head.run(commands.record(context.cluster, context.membership.to_json()))
    if output.exit_status != 0:
        raise StartFailed(
            f"the cluster can't be put on record: {output.stderr.strip()[:300]}",
            node=context.inventory.head.name,
            hint="look at free disk space and at the user's rights in ~/.local/state",
        )
    return context


async def _forget(context: Bringup) -> None:
    if context.options.recovering:
        return
    await context.head.run(commands.record(context.cluster, context.before.to_json()))


async def _start_workers(context: Bringup) -> Bringup:
    await _start_all(context, context.worker_launches)
    return context


async def _stop_workers(context: Bringup) -> None:
    await _stop_all(context, context.worker_launches)


async def _verify_workers(context: Bringup) -> Bringup:
    async def verify(name: str, launch: Launch) -> Hello:
        with telling(context.tell, "verify the worker", name) as note:
            hello = await verify_worker(context.opened.nodes, context.inventory.head.name, context.cluster, launch)
            note.detail = (
                f"listens on {launch.address}:{launch.port} only, RPC {hello.protocol}, "
                f"answers the head in {hello.round_trip_ms:.1f} ms"
            )
            return hello

    hellos = (await on_all(context.worker_launches, verify)).all_done()
    return await _take_names(context, {hello.protocol for hello in hellos.values()})


async def _take_names(context: Bringup, protocols: Collection[RpcProtocol]) -> Bringup:
    """Names of remote devices come from the head's own listing, never from a guess."""
    plan, facts = context.planned, context.looked.facts[context.inventory.head.name]
    endpoints = endpoints_of(plan.split)
    if not endpoints:
        return context
    assert facts.head_program is not None
    listed = await see_devices(context.head, facts.head_program, context.inventory.head.env, endpoints)
    names = match_devices(plan.split, listed)
    device = plan.draft.device if plan.draft else None
    settings = head_settings(context.recipe, facts, plan.split, names, draft_device=device)
    head = head_command(context.inventory, context.recipe, facts, settings)
    for protocol in protocols:
        faults = find_known_faults(context.looked.facts, facts.node, plan.header, plan.split, settings, protocol)
        demand_no_known_fault(faults, facts.node)
    return replace(context, plan=replace(plan, names=names, head=head))


async def _start_head(context: Bringup) -> Bringup:
    await _start_all(context, context.head_launch)
    return context


async def _stop_head(context: Bringup) -> None:
    await _stop_all(context, context.head_launch)


async def _wait(context: Bringup) -> Bringup:
    head = context.inventory.head.name
    nodes, workers = context.opened.nodes, context.worker_names
    async with open_running_head(context.head, context.head_record) as api:
        has_loaded = context.fresh or await api.health() is not Health.OK
        await wait_until_serving(nodes, context.cluster, head, workers, api, context.tell, _limits(context))
    if context.plan is not None and context.has_workers:
        held = await demand_buffers(context.head, context.cluster, context.plan.split)
        context.tell(Step("weights", Outcome.DONE, detail=held))
    if has_loaded:
        caching = [node.name for node in context.inventory.workers if node.rpc.cache]
        names = [name for name in workers if name in caching]
        await drop_damaged_caches(nodes, context.cluster, names, context.tell)
    return replace(context, has_loaded=has_loaded)


async def _ask_for_sense(context: Bringup) -> Bringup:
    """A worker with a broken backend gives fluent garbage and no error; only the numbers tell."""
    head = context.inventory.head.name
    key = reference_key(context.recipe, context.looked.facts[head])
    async with open_running_head(context.head, context.head_record) as api:
        sense = await demand_sense(api, head, key, on_one_node=not context.has_workers, tell=context.tell)
    if sense.verdict is Verdict.DOUBTFUL:
        # A head that does not answer may have lost a worker just now.
        await demand_alive(context.opened.nodes, context.cluster, [head, *context.worker_names])
        if context.options.demands_sense:
            raise ComputesNonsense(f"whether it computes sense can't be told: {sense.detail}", node=head)
    return context


def _limits(context: Bringup) -> Limits:
    options, models, plan = context.options, context.models, context.plan
    expected_s = plan.estimate.load_s if plan else None
    deadline_s = load_deadline_s(models.model.total_bytes if models else 0, expected_s)
    return Limits(deadline_s, options.stall_timeout_s, options.timeout_s)


async def _start_all(context: Bringup, launches: Mapping[str, Launch]) -> None:
    async def start_one(name: str, launch: Launch) -> None:
        with telling(context.tell, f"start the {launch.command.role}", name) as note:
            if not await start(context.opened.nodes, context.cluster, launch):
                note.outcome = Outcome.WOULD

    (await on_all(launches, start_one)).all_done()


async def _stop_all(context: Bringup, launches: Mapping[str, Launch]) -> None:
    async def stop_one(name: str, launch: Launch) -> bool:
        transport = context.opened.nodes[name]
        return await stop_recorded(transport, context.cluster, name, launch.command.role, context.tell)

    (await on_all(launches, stop_one)).all_done()


PHASES: Sequence[Phase[Bringup]] = (
    Phase("look at the nodes", _look),
    Phase("clear what is left", _clear, needed=lambda c: c.fresh and c.standing is not Standing.NOTHING),
    Phase("judge builds and nodes", _judge, needed=lambda c: c.fresh),
    Phase("read the model's header", _read_model, needed=lambda c: c.fresh),
    Phase("plan the split", _plan, needed=lambda c: c.fresh),
    Phase("put the cluster on record", _enrol, _forget, needed=lambda c: c.fresh),
    Phase("start the workers", _start_workers, _stop_workers, needed=lambda c: c.fresh and c.has_workers),
    Phase("verify the workers", _verify_workers, needed=lambda c: c.fresh and c.has_workers and c.real),
    Phase("start the head", _start_head, _stop_head, needed=lambda c: c.fresh),
    Phase(TITLE, _wait, needed=lambda c: c.options.wait and c.real),
    Phase("see that it computes sense", _ask_for_sense, needed=lambda c: c.has_loaded),
)
