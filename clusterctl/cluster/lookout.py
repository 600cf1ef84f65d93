"""Looking at a running cluster, once or again and again: one connection to each node, kept for all looks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from clusterctl.cluster.failure import find_cause
from clusterctl.cluster.head_api import HeadApi, head_api
from clusterctl.cluster.membership import targets_of
from clusterctl.cluster.node_memory import NodeMemory, read_memory
from clusterctl.cluster.observation import Observation, observe
from clusterctl.cluster.places import elsewhere
from clusterctl.cluster.prober import Prober
from clusterctl.cluster.progress import DEADLINE_S, Verdict
from clusterctl.cluster.record import Record
from clusterctl.cluster.running_head import certificate_of, first_key
from clusterctl.cluster.session import Session, session
from clusterctl.cluster.sight import Sight
from clusterctl.config.inventory import Inventory
from clusterctl.errors import ClusterctlError, NodeUnreachable
from clusterctl.llama.diagnosis import Diagnosis
from clusterctl.llama.load_log import model_buffers
from clusterctl.llama.serving import Health
from clusterctl.remote import commands
from clusterctl.remote.fanout import on_all
from clusterctl.remote.target import Target
from clusterctl.remote.transport import Transport
from clusterctl.reports import ProgressReport

# Reading the kernel's table of sockets costs a node ten milliseconds and more of a processor.
PROGRAMS_EVERY_S = 10.0
# Asking drivers for memory starts programs on the nodes.
MEMORY_EVERY_S = 30.0
# The part of a log that tells where weights went stands at its beginning.
LOAD_LOG_BYTES = 2 * 1024 * 1024

Value = TypeVar("Value")
Cause = tuple[str, Diagnosis]


@dataclass(frozen=True, slots=True)
class Kept(Generic[Value]):
    """A value that holds as long as its key is the same."""

    key: object
    value: Value


@dataclass(frozen=True, slots=True)
class Calm:
    """What was seen when all was well, and until when it is taken to hold."""

    sight: Sight
    until_s: float


class Lookout:
    """Looks at a cluster. Nodes that are lost are connected to again, without anybody waiting for it."""

    def __init__(
        self, inventory: Inventory, opened: Session, prober: Prober, programs_every_s: float = PROGRAMS_EVERY_S
    ) -> None:
        self._inventory = inventory
        self._cluster = inventory.cluster
        self._opened = opened
        self._prober = prober
        self._targets: dict[str, Target] = dict(targets_of(inventory))
        self._programs_every_s = programs_every_s
        self._has_looked = False
        self._calm: Calm | None = None
        self._joining: asyncio.Task[None] | None = None
        self._memory: Kept[Mapping[str, NodeMemory]] | None = None
        self._weights: Kept[Mapping[str, float] | None] | None = None
        self._cause: Kept[Cause | None] | None = None

    async def look(self) -> Sight:
        """Look once. While all is well, programs are looked at only now and then, and the head is just asked."""
        self._reconnect()
        clock = asyncio.get_running_loop().time
        if self._calm is not None and clock() < self._calm.until_s:
            sight = await self._ask_head(self._calm.sight)
            if self._is_calm(sight):
                return sight
        sight = await self._look_at_programs()
        sight = replace(sight, memory=await self._read_memory())
        sight = await self._ask_head(sight)
        if sight.progress.verdict == Verdict.STUCK:
            sight = await self._look_for_dead(sight)
        sight = replace(sight, cause=await self._find_cause(sight))
        self._calm = Calm(sight, clock() + self._programs_every_s) if self._is_calm(sight) else None
        return sight

    def _is_calm(self, sight: Sight) -> bool:
        is_well = sight.health is Health.OK and sight.is_whole and not sight.unreachable
        return is_well and sight.progress.verdict != Verdict.STUCK and not self._prober.is_waiting

    async def close(self) -> None:
        """Give up connecting to lost nodes."""
        if self._joining is not None:
            self._joining.cancel()
            await asyncio.wait([self._joining])

    @property
    def _nodes(self) -> dict[str, Transport]:
        """The nodes that can be reached just now; others may come back while something is awaited."""
        return dict(self._opened.nodes)

    async def _look_at_programs(self) -> Sight:
        seen = await self._observe(self._nodes)
        head = self._inventory.head
        sight = Sight(head.name, seen, head_is_remote=head.connection != "local")
        strangers = self._strangers(sight)
        if strangers:
            self._targets |= strangers
            await self._opened.join(strangers)
            more = await self._observe({n: self._opened.nodes[n] for n in strangers if n in self._opened.nodes})
            sight = replace(sight, seen={**seen, **more})
        return replace(sight, unreachable=dict(self._opened.unreachable))

    async def _observe(self, nodes: Mapping[str, Transport]) -> dict[str, Observation]:
        """Observe nodes; those that are lost meanwhile count as unreachable from now on."""
        with_activity = self._prober.is_waiting
        outcomes = await on_all(nodes, lambda _, node: observe(node, self._cluster, activity=with_activity))
        for name, error in outcomes.failed.items():
            self._opened.nodes.pop(name, None)
            self._opened.unreachable[name] = error
        return dict(outcomes.done)

    def _strangers(self, sight: Sight) -> dict[str, Target]:
        """Members to which the inventory does not lead any more; what was left of former ones serves nobody."""
        if sight.membership is None:
            return {}
        passed_over = {*self._targets, *(former.name for former in sight.membership.former)}
        places = elsewhere(sight.membership, self._inventory, sight.seen)
        return {place: target for place, target in places.items() if place not in passed_over}

    def _reconnect(self) -> None:
        lost = {name: self._targets[name] for name in self._opened.unreachable}
        if lost and self._has_looked and (self._joining is None or self._joining.done()):
            self._joining = asyncio.create_task(self._opened.join(lost))
        self._has_looked = True

    async def _ask_head(self, sight: Sight) -> Sight:
        process = sight.head_process
        node = sight.programs[sight.head].node if process else ""
        if process is None or not process.runs or node not in self._opened.nodes:
            return sight
        if sight.head in sight.suspended:
            return sight  # it would not answer
        head = self._opened.nodes[node]
        try:
            async with _api(head, process.record) as api:
                sight = replace(sight, health=await api.health())
                if sight.health is not Health.OK:
                    return sight
                if sight.suspended:
                    return replace(sight, progress=ProgressReport(Verdict.STUCK, "suspended"))
                probed = await self._prober.probe(api, sight.motion, may_ask=sight.is_whole)
            weights = await self._read_weights(head, sight.head, process.pid)
        except ClusterctlError as error:
            return replace(sight, unreachable={**sight.unreachable, node: error})
        return replace(sight, progress=probed.progress, traffic=probed.traffic, weights_mib=weights)

    async def _look_for_dead(self, sight: Sight) -> Sight:
        """What has died while a token was waited for is dead, not stuck."""
        again = await self._look_at_programs()
        sight = replace(sight, seen=again.seen, unreachable=again.unreachable)
        if sight.head_process and sight.head_process.runs:
            return sight
        return replace(sight, health=None, progress=ProgressReport())

    async def _read_memory(self) -> Mapping[str, NodeMemory]:
        period = int(asyncio.get_running_loop().time() / MEMORY_EVERY_S)
        if self._memory is None or self._memory.key != period:
            read = await on_all(self._nodes, lambda _, node: read_memory(node, self._cluster))
            self._memory = Kept(period, read.done)
        return self._memory.value

    async def _read_weights(self, head: Transport, name: str, pid: int | None) -> Mapping[str, float] | None:
        """Where the weights went; `None` if the beginning of the head's log is gone, which tells it."""
        if self._weights is None or self._weights.key != pid:
            place = f"~/.local/state/clusterctl/{self._cluster}/nodes/{name}"
            cut = await head.run(commands.read(f"{place}/log.start", 0, 32))
            log = await head.run(commands.read(f"{place}/log", 0, LOAD_LOG_BYTES))
            found = model_buffers(log.stdout.decode(errors="replace")) if cut.stdout.strip() == b"0" else {}
            self._weights = Kept(pid, found or None)
        return self._weights.value

    async def _find_cause(self, sight: Sight) -> Cause | None:
        dead = {(name, found.process.pid) for name, found in sight.programs.items() if not found.process.runs}
        if not dead:
            return None
        if self._cause is None or self._cause.key != dead:
            self._cause = Kept(dead, await find_cause(self._nodes, self._cluster))
        return self._cause.value


@asynccontextmanager
async def _api(head: Transport, record: Record) -> AsyncIterator[HeadApi]:
    """The head's API; without its key only what it tells everybody, which is its health."""
    certificate = await certificate_of(head, record)
    try:
        key = await first_key(head, record)
    except NodeUnreachable:
        raise
    except ClusterctlError:
        key = None
    async with head_api(head, record.address, record.port, key, certificate) as api:
        yield api


@asynccontextmanager
async def looking_out(
    inventory: Inventory,
    *,
    deadline_s: float = DEADLINE_S,
    token_every_s: float | None = 0.0,
    programs_every_s: float = PROGRAMS_EVERY_S,
) -> AsyncIterator[Lookout]:
    """Connect to every node and look at the cluster while the body runs.

    `token_every_s` is how often an idle head is asked for a token; `None` is never. `programs_every_s` is how
    often programs are looked at while all is well.
    """
    async with session(inventory) as opened:
        lookout = Lookout(inventory, opened, Prober(deadline_s, token_every_s), programs_every_s)
        try:
            yield lookout
        finally:
            await lookout.close()
