"""What `up` knows so far: the value that its phases hand on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from clusterctl.cluster.examine import Examination
from clusterctl.cluster.lock import new_token
from clusterctl.cluster.membership import Member, Membership, destination_of
from clusterctl.cluster.model_file import Models
from clusterctl.cluster.patience import STALL_TIMEOUT_S
from clusterctl.cluster.plan import Plan
from clusterctl.cluster.record import Record
from clusterctl.cluster.running_head import clients_url
from clusterctl.cluster.session import Session
from clusterctl.cluster.standing import Standing, processes_of
from clusterctl.cluster.starting import Launch
from clusterctl.cluster.stated import stated_build
from clusterctl.cluster.steps import Tell
from clusterctl.config.inventory import Inventory
from clusterctl.config.recipe import Recipe
from clusterctl.model import NodeCommand, Role
from clusterctl.remote.transport import Transport


@dataclass(frozen=True, slots=True)
class Options:
    """The options of `up`.

    `timeout_s` overrides the deadline that follows from the model's size. With `recovering`, the cluster must be
    on record as wanted, and stays so although it could not be started: the next `recover` tries again. With
    `demands_sense`, a cluster of which it can't be told whether it computes sense is a failure too. By
    `lock_token`, a second try finds the lock that the first could not give back.
    """

    allow_skew: bool = False
    replace: bool = False
    wait: bool = True
    timeout_s: float | None = None
    stall_timeout_s: float = STALL_TIMEOUT_S
    recovering: bool = False
    demands_sense: bool = False
    lock_token: str = field(default_factory=new_token)


@dataclass(frozen=True, slots=True)
class Bringup:
    """What is known so far; every phase returns a new one.

    `left` is what could not be cleared on nodes that are not of this cluster any more; `protocols`, what the
    workers speak. `has_loaded`: this run has waited until the model was loaded, whoever began that.
    """

    inventory: Inventory
    recipe: Recipe
    options: Options
    opened: Session
    tell: Tell
    examination: Examination | None = None
    digest: str = ""
    standing: Standing = Standing.NOTHING
    former: tuple[Member, ...] = ()
    left: Mapping[str, str] = field(default_factory=dict)
    models: Models | None = None
    plan: Plan | None = None
    protocols: Mapping[str, str] = field(default_factory=dict)
    has_loaded: bool = False

    @property
    def fresh(self) -> bool:
        """Whether the cluster is to be started, rather than found as asked for."""
        return self.standing is not Standing.SAME

    @property
    def real(self) -> bool:
        """Whether anything may really be changed."""
        return not self.opened.dry

    @property
    def cluster(self) -> str:
        """The cluster's name."""
        return self.inventory.cluster

    @property
    def looked(self) -> Examination:
        """The examination, which the first phase makes."""
        assert self.examination is not None
        return self.examination

    @property
    def planned(self) -> Plan:
        """The plan, which an earlier phase makes."""
        assert self.plan is not None
        return self.plan

    @property
    def worker_names(self) -> tuple[str, ...]:
        """The nodes whose workers the plan uses; those on record, where the cluster was found as asked for."""
        if self.plan is not None:
            return tuple(command.node for command in self.plan.workers)
        processes = processes_of(self.looked.facts)
        return tuple(name for name, process in processes.items() if process.record.role is Role.WORKER)

    @property
    def has_workers(self) -> bool:
        """Whether there are any; a head may serve alone."""
        return bool(self.worker_names)

    @property
    def url(self) -> str:
        """The base URL of the head's API, as its clients see it."""
        return clients_url(self.inventory, self.recipe.server)

    @property
    def head_record(self) -> Record:
        """What is on record of the head that was started, or found."""
        name = self.inventory.head.name
        if self.plan is not None:
            return self.head_launch[name].record(self.cluster)
        process = self.looked.facts[name].observation.process(name)
        assert process is not None
        return process.record

    @property
    def head(self) -> Transport:
        """The way to the head."""
        return self.opened.nodes[self.inventory.head.name]

    @property
    def worker_launches(self) -> dict[str, Launch]:
        """What to start on each worker, by node."""
        endpoints = {s.offer.node: s.offer.rpc_endpoint for s in self.planned.split.shares}
        launches = {}
        for command in self.planned.workers:
            address, _, port = str(endpoints[command.node]).rpartition(":")
            launches[command.node] = self._launch(command, address, int(port))
        return launches

    @property
    def head_launch(self) -> dict[str, Launch]:
        """What to start on the head, by its name."""
        server, command = self.recipe.server, self.planned.head
        assert command is not None
        return {command.node: self._launch(command, server.host, server.port)}

    def _launch(self, command: NodeCommand, address: str, port: int) -> Launch:
        facts = self.looked.facts[command.node]
        build = str(stated_build(facts) or "unknown")
        # A processor's own memory comes back with its process; a card's is for its driver to give back.
        cards = [device for device in facts.devices or () if device.name != "CPU"]
        free_mib = {device.name: device.free_mib for device in cards if device.free_mib is not None}
        return Launch(command, address, port, build, self.digest, free_mib)

    @property
    def membership(self) -> Membership:
        """Who belongs to the cluster, as it is kept on the head."""
        launches = [*self.worker_launches.values(), *self.head_launch.values()]
        members = tuple(
            Member(
                name=launch.command.node,
                role=launch.command.role,
                destination=destination_of(self.inventory.node(launch.command.node)),
                address=launch.address,
                port=launch.port,
                rpc_protocol=self.protocols.get(launch.command.node),
                hostname=self.looked.facts[launch.command.node].observation.system.hostname,
            )
            for launch in launches
        )
        return replace(self.before, members=members, is_leaving=False)

    @property
    def before(self) -> Membership:
        """What is on record until the cluster is brought up: at most what was left behind elsewhere."""
        return Membership((), self.url, self.recipe.model.alias or self.recipe.name, True, self.former)
