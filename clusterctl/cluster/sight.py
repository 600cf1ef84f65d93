"""Everything that one look at a cluster shows, before it is judged. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from clusterctl.cluster.membership import Member, Membership, parse_membership
from clusterctl.cluster.node_memory import NodeMemory
from clusterctl.cluster.observation import Observation, Vitals
from clusterctl.cluster.progress import Motion
from clusterctl.cluster.record import Process
from clusterctl.errors import ClusterctlError
from clusterctl.llama.diagnosis import Diagnosis
from clusterctl.llama.serving import Health
from clusterctl.model import Role
from clusterctl.reports import ProgressReport, TrafficReport


@dataclass(frozen=True, slots=True)
class Found:
    """A program on record, and the node whose machine keeps the record."""

    node: str
    process: Process


@dataclass(frozen=True, slots=True)
class Sight:
    """One look at a cluster.

    `named_head` is the head of the inventory; `head_is_remote` if that is not this machine. `weights_mib` is where
    the head's log says that weights went, by endpoint or by its own buffers; `None` if the log does not reach back
    so far. `cause` is why a program died, and on which node.
    """

    named_head: str
    seen: Mapping[str, Observation]
    unreachable: Mapping[str, ClusterctlError] = field(default_factory=dict)
    health: Health | None = None
    traffic: TrafficReport = field(default_factory=TrafficReport)
    progress: ProgressReport = field(default_factory=ProgressReport)
    memory: Mapping[str, NodeMemory] = field(default_factory=dict)
    weights_mib: Mapping[str, float] | None = None
    cause: tuple[str, Diagnosis] | None = None
    head_is_remote: bool = False

    @property
    def membership(self) -> Membership | None:
        """What is on record of the cluster."""
        return find_membership(self.seen, self.named_head)

    @property
    def head(self) -> str:
        """The head that is on record, else the inventory's."""
        return head_of(self.membership, self.named_head)

    @property
    def head_process(self) -> Process | None:
        """The head's process as its node has it on record."""
        return self.programs[self.head].process if self.head in self.programs else None

    @property
    def programs(self) -> Mapping[str, Found]:
        """Every program on record, by its node's name."""
        return programs_of(self.seen)

    @property
    def workers(self) -> tuple[Member, ...]:
        """The workers of the cluster on record; without one, those that have something on record themselves."""
        if self.membership is not None:
            return tuple(member for member in self.membership.members if member.role is Role.WORKER)
        return tuple(
            Member(name, Role.WORKER, None, found.process.record.address, found.process.record.port)
            for name, found in self.programs.items()
            if found.process.record.role is Role.WORKER
        )

    @property
    def suspended(self) -> tuple[str, ...]:
        """The members whose process has been stopped by a signal or a debugger."""
        names = (self.head, *(member.name for member in self.workers))
        return tuple(name for name in names if (vitals := self.vitals_of(name)) and vitals.is_suspended)

    @property
    def is_whole(self) -> bool:
        """Whether all workers run and are connected to."""
        return all(
            member.name in self.programs and self.programs[member.name].process.runs and self.peers_of(member)
            for member in self.workers
        )

    def vitals_of(self, name: str) -> Vitals | None:
        """How a running member's process does; `None` if it does not run or is not told."""
        found = self.programs.get(name)
        if found is None or not found.process.runs:
            return None
        return self.seen[found.node].vitals.get(name)

    def peers_of(self, worker: Member) -> tuple[str, ...]:
        """Who is connected to a worker."""
        found = self.programs.get(worker.name)
        observation = self.seen.get(found.node if found else worker.name)
        sockets = observation.attached(worker.port) if observation else ()
        return tuple(s.peer for s in sockets if s.address == worker.address and s.peer is not None)

    @property
    def orphans(self) -> Mapping[str, Found]:
        """Running programs that belong to no cluster on record; none if the record can't be seen."""
        return orphans_of(self.seen, self.named_head)

    @property
    def motion(self) -> Motion:
        """What the programs have done so far."""
        workers = [member.name for member in self.workers]
        moved = {name: n for observation in self.seen.values() for name, n in observation.moved_bytes.items()}
        times = {name: v.processor_s for name in (self.head, *workers) if (v := self.vitals_of(name))}
        return Motion(
            moved_bytes={name: moved[name] for name in workers if name in moved},
            worker_s={name: s for name in workers if (s := times.get(name)) is not None},
            head_s=times.get(self.head),
        )


def find_membership(seen: Mapping[str, Observation], head: str) -> Membership | None:
    """Return what is on record of a cluster."""
    keeper = find_keeper(seen, head)
    return parse_membership(seen[keeper].membership) if keeper else None


def find_keeper(seen: Mapping[str, Observation], head: str) -> str | None:
    """Return the node that keeps the record of a cluster: its head, or one that was its head before."""
    nodes = (head, *(name for name in seen if name != head))
    return next((name for name in nodes if name in seen and parse_membership(seen[name].membership)), None)


def head_of(membership: Membership | None, named: str) -> str:
    """Return the name of the head on record, `named` if there is none."""
    members = membership.members if membership else ()
    return next((member.name for member in members if member.role is Role.HEAD), named)


def programs_of(seen: Mapping[str, Observation]) -> dict[str, Found]:
    """Return every program on record; nodes on one machine see each other's, and each is told by its own node."""
    found = {n: Found(node, process) for node, own in seen.items() for n, process in own.processes.items()}
    return found | {n: Found(n, process) for n, own in seen.items() if (process := own.process(n))}


def orphans_of(seen: Mapping[str, Observation], head: str) -> dict[str, Found]:
    """Return the running programs that no record of a cluster counts.

    None if the head's machine can't be seen: they may well belong to the cluster that it has on record.
    """
    membership = find_membership(seen, head)
    if head not in seen and membership is None:
        return {}
    members = {member.name for member in membership.members} if membership else set()
    for former in membership.former if membership else ():
        # It may be a node of the inventory again, and then has its own name.
        members |= {former.name, former.name.partition("@")[0]}
    return {n: found for n, found in programs_of(seen).items() if found.process.runs and n not in members}
