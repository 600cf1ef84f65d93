"""What `up` knows so far: the value that its phases hand on."""

from __future__ import annotations

from dataclasses import dataclass

from clusterctl.cluster.examine import Examination
from clusterctl.cluster.membership import Member, Membership, destination_of
from clusterctl.cluster.model_file import Models
from clusterctl.cluster.patience import STALL_TIMEOUT_S
from clusterctl.cluster.plan import Plan
from clusterctl.cluster.session import Session
from clusterctl.cluster.skew import stated_build
from clusterctl.cluster.standing import Standing
from clusterctl.cluster.starting import Launch
from clusterctl.cluster.steps import Tell
from clusterctl.config.inventory import Inventory
from clusterctl.config.recipe import Recipe
from clusterctl.model import NodeCommand
from clusterctl.remote.transport import Transport


@dataclass(frozen=True, slots=True)
class Options:
    """The options of `up`.

    `timeout_s` overrides the deadline that follows from the model's size. `keep_record` leaves the cluster on
    record although it could not be started, so that `recover` tries again.
    """

    allow_skew: bool = False
    replace: bool = False
    wait: bool = True
    timeout_s: float | None = None
    stall_timeout_s: float = STALL_TIMEOUT_S
    keep_record: bool = False


@dataclass(frozen=True, slots=True)
class Bringup:
    """What is known so far; every phase returns a new one."""

    inventory: Inventory
    recipe: Recipe
    options: Options
    opened: Session
    tell: Tell
    examination: Examination | None = None
    digest: str = ""
    standing: Standing = Standing.NOTHING
    models: Models | None = None
    plan: Plan | None = None

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
    def url(self) -> str:
        """The base URL of the head's API, as its own machine sees it."""
        return f"http://{self.recipe.server.host}:{self.recipe.server.port}"

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
        build = str(stated_build(self.looked.facts[command.node]) or "unknown")
        return Launch(command, address, port, build, self.digest)

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
            )
            for launch in launches
        )
        return Membership(members, self.url, self.recipe.model.alias or self.recipe.name)
