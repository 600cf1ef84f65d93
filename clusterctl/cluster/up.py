"""`up`: look, judge, plan, start, verify, launch, wait, ask. The list of phases at the end is the whole of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clusterctl.cluster.bringup import Bringup, Options
from clusterctl.cluster.lock import holding
from clusterctl.cluster.phases import Phase, run_phases
from clusterctl.cluster.readiness import TITLE
from clusterctl.cluster.running_head import access_of
from clusterctl.cluster.session import session
from clusterctl.cluster.standing import Standing
from clusterctl.cluster.steps import Tell
from clusterctl.cluster.up_planning import clear_remains, judge, look, plan_split, read_model
from clusterctl.cluster.up_serving import ask_for_sense, wait
from clusterctl.cluster.up_starting import (
    enrol,
    start_head,
    start_workers,
    stop_head,
    stop_workers,
    take_off_record,
    verify_workers,
)
from clusterctl.config.inventory import Inventory
from clusterctl.config.recipe import Recipe
from clusterctl.errors import raise_all
from clusterctl.reports import Access


@dataclass(frozen=True, slots=True)
class Brought:
    """What `up` did: whether anything changed, where the cluster serves, and what its clients need.

    `left` is what an earlier run has left on nodes that are not of this cluster any more, with the reason.
    """

    changed: bool
    url: str
    access: Access
    left: Mapping[str, str]


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
            done = await run_phases(PHASES, begun, tell, dry=dry)
            # Who took the lock meanwhile may be changing what was just brought up.
            await lease.renew()
        access = access_of(done.head_record, is_remote=inventory.head.connection != "local")
        return Brought(done.fresh, done.url, access, done.left)


PHASES: Sequence[Phase[Bringup]] = (
    Phase("look at the nodes", look),
    Phase("clear what is left", clear_remains, needed=lambda c: c.fresh and c.standing is not Standing.NOTHING),
    Phase("judge builds and nodes", judge, needed=lambda c: c.fresh),
    Phase("read the model's header", read_model, needed=lambda c: c.fresh),
    Phase("plan the split", plan_split, needed=lambda c: c.fresh),
    Phase("put the cluster on record", enrol, take_off_record, needed=lambda c: c.fresh),
    Phase("start the workers", start_workers, stop_workers, needed=lambda c: c.fresh and c.has_workers),
    Phase("verify the workers", verify_workers, needed=lambda c: c.fresh and c.has_workers and c.real),
    Phase("start the head", start_head, stop_head, needed=lambda c: c.fresh),
    Phase(TITLE, wait, needed=lambda c: c.options.wait and c.real),
    Phase("see that it computes sense", ask_for_sense, needed=lambda c: c.has_loaded),
)
