"""`bench --control`: bring up each arm in turn, measure it, tear it down, and leave things as they were."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

from clusterctl.bench.arms import Arm, choose_arms
from clusterctl.bench.llama_bench import bench_directly
from clusterctl.bench.run import Wanted, bench_running
from clusterctl.cluster.bringup import Options
from clusterctl.cluster.clearing import left_errors
from clusterctl.cluster.down import tear_down
from clusterctl.cluster.status import read_status
from clusterctl.cluster.steps import Tell
from clusterctl.cluster.up import bring_up
from clusterctl.config.inventory import Inventory
from clusterctl.config.recipe import Recipe
from clusterctl.errors import ClusterctlError, StartFailed, UsageError, raise_all
from clusterctl.measurements import CLUSTER_ARM, Run, SkippedArm
from clusterctl.model import Outcome, Step


async def bench_arms(
    inventory: Inventory,
    recipe: Recipe,
    wanted: Wanted,
    slots: int,
    options: Options,
    tell: Tell,
    keep: Callable[[Run], None],
) -> tuple[SkippedArm, ...]:
    """Measure every arm and hand each run to `keep` at once; return the arms that could not be measured.

    With `options.replace`, a cluster that runs is ended first, and brought up again from the recipe afterwards.

    Raises:
        UsageError: if the cluster is one node anyway.
        StartFailed: if something runs and may not be replaced, or the cluster itself does not start.
    """
    if not inventory.workers:
        raise UsageError("--control compares a cluster with one node, and this is one node", hint="leave it out")
    ran = await _end_what_runs(inventory, options, tell)
    try:
        chosen = await choose_arms(inventory, recipe, wanted.settings, slots, allow_skew=options.allow_skew)
        skipped = list(chosen.skipped)
        for arm in chosen.arms:
            skipped += await _bench_arm(arm, wanted, options, tell, keep)
    except BaseException as error:
        if ran:
            error.add_note("the cluster was ended for --control; `clusterctl up` brings it back")
        raise
    if ran:
        await bring_up(inventory, recipe, options, tell)
    return tuple(skipped)


async def _end_what_runs(inventory: Inventory, options: Options, tell: Tell) -> bool:
    """Return whether a head served before, which no longer does now."""
    status = await read_status(inventory)
    if status.state == "down":
        return False
    if not options.replace:
        raise StartFailed(
            f"the cluster is {status.state}, and --control starts others in its place",
            node=inventory.head.name,
            hint="`clusterctl down` first, or --replace to end it now and bring it up again afterwards",
        )
    raise_all(left_errors(await tear_down(inventory, tell)))
    return status.head.pid is not None


async def _bench_arm(
    arm: Arm, wanted: Wanted, options: Options, tell: Tell, keep: Callable[[Run], None]
) -> list[SkippedArm]:
    """Measure an arm; the cluster's own errors are raised, those of the others are reasons to go without."""
    tell(Step(f"arm: {arm.name}", Outcome.DONE, detail=", ".join(node.name for node in arm.inventory.nodes)))
    is_cluster = arm.name == CLUSTER_ARM
    asked = replace(wanted, arm=arm.name, with_estimate=wanted.with_estimate and is_cluster)
    try:
        async with _standing(arm, options, tell):
            run = await bench_running(arm.inventory, arm.recipe, asked, tell)
            keep(run)
            direct = await bench_directly(arm.inventory, arm.recipe, run, tell) if is_cluster else None
    except ClusterctlError as error:
        if is_cluster:
            raise
        return [SkippedArm(arm.name, str(error))]
    if isinstance(direct, Run):
        keep(direct)
    return [direct] if isinstance(direct, SkippedArm) else []


@asynccontextmanager
async def _standing(arm: Arm, options: Options, tell: Tell) -> AsyncIterator[None]:
    """Have the arm up while the body runs; it is torn down whatever happens."""
    await bring_up(arm.inventory, arm.recipe, replace(options, replace=False), tell)
    try:
        yield
    finally:
        cleared = await tear_down(arm.inventory, tell)
    raise_all(left_errors(cleared))
