"""Looking at a running cluster, once or again and again: one connection to each node, kept for all looks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace

from clusterctl.cluster.failure import find_cause
from clusterctl.cluster.head_api import HeadApi, Health, head_api
from clusterctl.cluster.membership import Membership, targets_of
from clusterctl.cluster.node_memory import NodeMemory, read_memory
from clusterctl.cluster.observation import Observation, observe
from clusterctl.cluster.prober import Prober
from clusterctl.cluster.progress import DEADLINE_S, Verdict
from clusterctl.cluster.record import Process
from clusterctl.cluster.running_head import open_running_head
from clusterctl.cluster.session import Session, session
from clusterctl.cluster.sight import Sight
from clusterctl.config.inventory import Inventory
from clusterctl.errors import ClusterctlError
from clusterctl.llama.load_log import model_buffers
from clusterctl.remote import commands
from clusterctl.remote.fanout import on_all
from clusterctl.remote.target import Destination
from clusterctl.remote.transport import Transport

# Asking drivers for memory starts programs on the nodes.
MEMORY_EVERY_S = 15.0
# The part of a log that tells where weights went stands at its beginning.
LOAD_LOG_BYTES = 2 * 1024 * 1024


class Lookout:
    """Looks at a cluster. Nodes that are lost are connected to again, without anybody waiting for it."""

    def __init__(self, inventory: Inventory, opened: Session, prober: Prober) -> None:
        self._inventory = inventory
        self._opened = opened
        self._prober = prober
        self._targets: dict[str, Destination | None] = targets_of(inventory)
        self._joining: asyncio.Task[None] | None = None
        self._memory: Mapping[str, NodeMemory] = {}
        self._memory_at_s: float | None = None
        self._weights: tuple[int | None, Mapping[str, float] | None] = (None, None)

    async def look(self) -> Sight:
        """Look once."""
        self._reconnect()
        sight = await self._look_at_programs()
        sight = replace(sight, memory=await self._read_memory())
        sight = await self._ask_head(sight)
        if sight.progress.verdict == Verdict.STUCK:
            # What has died meanwhile is told as dead, not as stuck.
            again = await self._look_at_programs()
            sight = replace(sight, seen=again.seen, unreachable=again.unreachable)
        return replace(sight, cause=await self._find_cause(sight))

    async def _look_at_programs(self) -> Sight:
        seen = await self._observe(self._opened.nodes)
        sight = Sight(self._inventory.head.name, seen, self._opened.unreachable)
        strangers = self._strangers(sight.membership)
        if strangers:
            self._targets |= strangers
            await self._opened.join(strangers)
            more = await self._observe({n: self._opened.nodes[n] for n in strangers if n in self._opened.nodes})
            sight = replace(sight, seen={**seen, **more})
        return replace(sight, unreachable=dict(self._opened.unreachable))

    async def _observe(self, nodes: Mapping[str, Transport]) -> dict[str, Observation]:
        """Observe nodes; those that are lost meanwhile count as unreachable from now on."""
        cluster, with_activity = self._inventory.cluster, self._prober.is_waiting
        outcomes = await on_all(nodes, lambda _, node: observe(node, cluster, activity=with_activity))
        for name, error in outcomes.failed.items():
            self._opened.nodes.pop(name, None)
            self._opened.unreachable[name] = error
        return dict(outcomes.done)

    def _strangers(self, membership: Membership | None) -> dict[str, Destination | None]:
        """Members that the inventory does not name any more."""
        members = membership.members if membership else ()
        return {member.name: member.destination for member in members if member.name not in self._targets}

    def _reconnect(self) -> None:
        lost = {name: self._targets[name] for name in self._opened.unreachable}
        if lost and self._memory_at_s is not None and (self._joining is None or self._joining.done()):
            self._joining = asyncio.create_task(self._opened.join_again(lost))

    async def close(self) -> None:
        """Give up connecting to lost nodes."""
        if self._joining is not None:
            self._joining.cancel()
            await asyncio.wait([self._joining])

    async def _read_memory(self) -> Mapping[str, NodeMemory]:
        now_s = asyncio.get_running_loop().time()
        if self._memory_at_s is None or now_s - self._memory_at_s >= MEMORY_EVERY_S:
            read = await on_all(self._opened.nodes, lambda _, node: read_memory(node, self._inventory.cluster))
            self._memory, self._memory_at_s = read.done, now_s
        return self._memory

    async def _ask_head(self, sight: Sight) -> Sight:
        process = sight.head_process
        if process is None or not process.runs:
            return sight
        node = sight.programs[sight.head].node
        try:
            async with _api(self._opened.nodes[node], process) as api:
                sight = replace(sight, health=await api.health())
                if sight.health is not Health.OK:
                    return sight
                probed = await self._prober.probe(api, sight.motion)
            weights = await self._read_weights(node, sight.head, process.pid)
        except ClusterctlError as error:
            return replace(sight, unreachable={**sight.unreachable, node: error})
        return replace(sight, progress=probed.progress, traffic=probed.traffic, weights_mib=weights)

    async def _read_weights(self, node: str, head: str, pid: int | None) -> Mapping[str, float] | None:
        """Where the weights went, told once for each head; `None` where the log has nothing of it."""
        if self._weights[0] != pid:
            log = f"~/.local/state/clusterctl/{self._inventory.cluster}/nodes/{head}/log"
            output = await self._opened.nodes[node].run(commands.read(log, 0, LOAD_LOG_BYTES))
            self._weights = (pid, model_buffers(output.stdout.decode(errors="replace")) or None)
        return self._weights[1]

    async def _find_cause(self, sight: Sight) -> object:
        dead = [found for found in sight.programs.values() if not found.process.runs]
        return await find_cause(self._opened.nodes, self._inventory.cluster) if dead else None


@asynccontextmanager
async def _api(head: Transport, process: Process) -> AsyncIterator[HeadApi]:
    """The head's API; without its key only as much as it tells everybody, which is its health."""
    record = process.record
    async with open_running_head(head, record) as api:
        yield api


@asynccontextmanager
async def looking_out(
    inventory: Inventory, *, deadline_s: float = DEADLINE_S, token_every_s: float | None = 0.0
) -> AsyncIterator[Lookout]:
    """Connect to every node and look at the cluster while the body runs.

    `token_every_s` is how often an idle head is asked for a token; `None` is never.
    """
    async with session(inventory) as opened:
        lookout = Lookout(inventory, opened, Prober(deadline_s, token_every_s))
        try:
            yield lookout
        finally:
            await lookout.close()
