"""Which nodes belong to a running cluster, kept on its head: `down` works from any machine with it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from clusterctl.cluster.record import known_fields
from clusterctl.config.inventory import Inventory, Node
from clusterctl.model import Role
from clusterctl.remote.target import Destination, Machine, Target


@dataclass(frozen=True, slots=True)
class Member:
    """A node of the cluster as it was brought up; `destination` is `None` for `connection: local`.

    `rpc_protocol` is what a worker said to the head before that took its only connection; `None` until then.
    `hostname` is what its machine calls itself; `None` if that is not on record.
    """

    name: str
    role: Role
    destination: Destination | None
    address: str
    port: int
    rpc_protocol: str | None = None
    hostname: str | None = None

    @property
    def target(self) -> Target:
        """Where to reach it: what was local is so only on its own machine."""
        return self.destination or (Machine(self.hostname) if self.hostname else None)


@dataclass(frozen=True, slots=True)
class Membership:
    """All members, and what they serve; `is_leaving` once a `down` of the whole has begun.

    `former` are those on which something was left when the cluster was brought up anew without them; they are
    called `NAME@HOST`.
    """

    members: tuple[Member, ...]
    url: str
    alias: str
    is_leaving: bool = False
    former: tuple[Member, ...] = ()

    @property
    def is_wanted(self) -> bool:
        """Whether the cluster is meant to be up: nobody has begun to take down the whole, or has its head."""
        return not self.is_leaving and any(member.role is Role.HEAD for member in self.members)

    def protocol_of(self, name: str) -> str | None:
        """The RPC protocol that a member's worker spoke when it was verified."""
        return next((member.rpc_protocol for member in self.members if member.name == name), None)

    def to_json(self) -> str:
        """The text kept on the head; empty once nobody is left."""
        return json.dumps(asdict(self)) if self.members or self.former else ""

    def without(self, gone: set[str]) -> Membership:
        """The membership that is left once the nodes named in `gone` are clean."""
        members = tuple(member for member in self.members if member.name not in gone)
        former = tuple(member for member in self.former if member.name not in gone)
        return replace(self, members=members, former=former)


def parse_membership(text: str | None) -> Membership | None:
    """Read the text kept on the head; `None` if there is none or it is damaged."""
    try:
        raw = json.loads(text or "")
        members = tuple(_member(member) for member in raw["members"])
        former = tuple(_member(member) for member in raw.get("former", ()))
        return Membership(members, raw["url"], raw["alias"], raw.get("is_leaving") is True, former)
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _member(raw: Mapping[str, Any]) -> Member:
    fields = known_fields(Member, raw)
    destination = fields["destination"]
    known = known_fields(Destination, destination) if destination else None
    fields["destination"] = known and Destination(**known)
    fields["role"] = Role(fields["role"])
    return Member(**fields)


def destination_of(node: Node) -> Destination | None:
    """Where to reach a node of the inventory; `None` is this machine."""
    if node.connection == "local":
        return None
    ssh = node.ssh
    return Destination(
        host=node.host,
        user=ssh.user,
        port=ssh.port,
        identity_file=ssh.identity_file,
        known_hosts=ssh.known_hosts,
        connect_timeout_s=ssh.connect_timeout_s,
    )


def targets_of(inventory: Inventory) -> dict[str, Destination | None]:
    """Where to reach every node of the inventory, by name."""
    return {node.name: destination_of(node) for node in inventory.nodes}
