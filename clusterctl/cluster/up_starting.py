"""The phases of `up` that start and verify, each with its undo."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from clusterctl.cluster.bringup import Bringup
from clusterctl.cluster.failure import explaining
from clusterctl.cluster.known_faults import demand_no_known_fault, find_known_faults
from clusterctl.cluster.launch import endpoints_of, head_command, head_settings
from clusterctl.cluster.membership import Membership
from clusterctl.cluster.rpc_probe import Hello
from clusterctl.cluster.starting import Launch, start
from clusterctl.cluster.steps import telling
from clusterctl.cluster.stopping import stop_recorded
from clusterctl.cluster.verify import match_devices, see_devices, verify_worker
from clusterctl.errors import StartFailed
from clusterctl.llama.wire import RpcProtocol
from clusterctl.model import Outcome
from clusterctl.remote import commands
from clusterctl.remote.fanout import on_all


async def enrol(context: Bringup) -> Bringup:
    """Written before anything starts, so that a lost run can be cleared from any machine."""
    await _record(context, context.membership)
    return context


async def take_off_record(context: Bringup) -> None:
    """Put on record what was there before; `recover` leaves the cluster on record, to try again."""
    if not context.options.recovering:
        await _record(context, context.before)


async def _record(context: Bringup, membership: Membership) -> None:
    output = await context.head.run(commands.record(context.cluster, membership.to_json()))
    if output.exit_status != 0:
        raise StartFailed(
            f"the cluster's record can't be written: {output.stderr.strip()[:300]}",
            node=context.inventory.head.name,
            hint="look at free disk space and at the user's rights in ~/.local/state",
        )


async def start_workers(context: Bringup) -> Bringup:
    """Start the workers, all at once."""
    await _start_all(context, context.worker_launches)
    return context


async def stop_workers(context: Bringup) -> None:
    """End the workers again."""
    await _stop_all(context, context.worker_launches)


async def verify_workers(context: Bringup) -> Bringup:
    """See that each worker listens only where planned, and that the head sees its devices."""

    async def verify(name: str, launch: Launch) -> Hello:
        with telling(context.tell, "verify the worker", name) as note:
            async with explaining(context.opened.nodes, context.cluster):
                hello = await verify_worker(
                    context.opened.nodes, context.inventory.head.name, context.cluster, launch
                )
            note.detail = (
                f"listens on {launch.address}:{launch.port} only, RPC {hello.protocol}, "
                f"answers the head in {hello.round_trip_ms:.1f} ms"
            )
            return hello

    hellos = (await on_all(context.worker_launches, verify)).all_done()
    # A worker that serves can't be asked: it takes one client.
    context = replace(context, protocols={name: str(hello.protocol) for name, hello in hellos.items()})
    await _record(context, context.membership)
    return await _take_names(context, {hello.protocol for hello in hellos.values()})


async def _take_names(context: Bringup, protocols: Collection[RpcProtocol]) -> Bringup:
    """Names of remote devices come from the head's own listing, never from a guess."""
    plan, facts = context.planned, context.looked.facts[context.inventory.head.name]
    endpoints = endpoints_of(plan.split)
    if not endpoints:
        return context
    assert facts.head_program is not None
    async with explaining(context.opened.nodes, context.cluster):
        listed = await see_devices(context.head, facts.head_program, context.inventory.head.env, endpoints)
        names = match_devices(plan.split, listed)
    device = plan.draft.device if plan.draft else None
    settings = head_settings(context.recipe, facts, plan.split, names, draft_device=device)
    head = head_command(context.inventory, context.recipe, facts, settings)
    for protocol in protocols:
        faults = find_known_faults(context.looked.facts, facts.node, plan.header, plan.split, settings, protocol)
        demand_no_known_fault(faults, facts.node)
    return replace(context, plan=replace(plan, names=names, head=head))


async def start_head(context: Bringup) -> Bringup:
    """Start the head with the workers it was seen with."""
    await _start_all(context, context.head_launch)
    return context


async def stop_head(context: Bringup) -> None:
    """End the head again."""
    await _stop_all(context, context.head_launch)


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
