"""The last phases of `up`: wait until the cluster serves, and see that what it computes makes sense."""

from __future__ import annotations

from dataclasses import replace

from clusterctl.cluster.bringup import Bringup
from clusterctl.cluster.cache_check import drop_damaged_caches
from clusterctl.cluster.canary import demand_sense
from clusterctl.cluster.failure import explaining
from clusterctl.cluster.patience import Limits, load_deadline_s
from clusterctl.cluster.readiness import demand_alive, demand_buffers, wait_until_serving
from clusterctl.cluster.references import reference_key
from clusterctl.cluster.running_head import open_running_head
from clusterctl.errors import ComputesNonsense
from clusterctl.llama.sense import Verdict
from clusterctl.llama.serving import Health
from clusterctl.model import Outcome, Step


async def wait(context: Bringup) -> Bringup:
    """Wait until the head serves with all that the workers were to hold."""
    head = context.inventory.head.name
    nodes, workers = context.opened.nodes, context.worker_names
    async with explaining(nodes, context.cluster):
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


async def ask_for_sense(context: Bringup) -> Bringup:
    """A worker with a broken backend gives fluent garbage and no error; only the numbers tell."""
    head = context.inventory.head.name
    key = reference_key(context.recipe, context.looked.facts[head])
    async with open_running_head(context.head, context.head_record) as api:
        sense = await demand_sense(api, head, key, on_one_node=not context.has_workers, tell=context.tell)
    if sense.verdict is Verdict.DOUBTFUL:
        # A head that does not answer may have lost a worker just now.
        async with explaining(context.opened.nodes, context.cluster):
            await demand_alive(context.opened.nodes, context.cluster, [head, *context.worker_names])
        if context.options.demands_sense:
            raise ComputesNonsense(f"whether it computes sense can't be told: {sense.detail}", node=head)
    return context


def _limits(context: Bringup) -> Limits:
    options, models, plan = context.options, context.models, context.plan
    expected_s = plan.estimate.load_s if plan else None
    deadline_s = load_deadline_s(models.model.total_bytes if models else 0, expected_s)
    return Limits(deadline_s, options.stall_timeout_s, options.timeout_s)
