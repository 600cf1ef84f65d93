"""A cluster of a head and two workers as one look shows it, to be changed by tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from clusterctl.cluster.membership import Member, Membership
from clusterctl.cluster.observation import Observation, System, Vitals
from clusterctl.cluster.record import Process, ProcessState, Record
from clusterctl.cluster.sight import Sight
from clusterctl.llama.serving import Health
from clusterctl.model import Role
from clusterctl.remote.sockets import Socket
from clusterctl.reports import ProgressReport

ADDRESSES = {"head": "10.0.0.1", "left": "10.0.0.2", "right": "10.0.0.3"}
PIDS = {"head": 100, "left": 200, "right": 300}
PORT = 50052
HEAD_ARGV = (
    "/opt/llama-server",
    *("--rpc", "10.0.0.2:50052,10.0.0.3:50052", "--device", "RPC0,RPC1"),
)


def role_of(name: str) -> Role:
    return Role.HEAD if name == "head" else Role.WORKER


def process(name: str, state: ProcessState = ProcessState.RUNNING, exit_status: int | None = None) -> Process:
    record = Record(
        cluster="lab",
        node=name,
        role=role_of(name),
        argv=HEAD_ARGV if name == "head" else ("/opt/ggml-rpc-server",),
        address="127.0.0.1" if name == "head" else ADDRESSES[name],
        port=8080 if name == "head" else PORT,
        build="b10434",
        owner="ops@desk",
        started_at="2026-11-30T02:25:11+00:00",
        inputs="",
    )
    return Process(record, state, PIDS[name], exit_status)


MEMBERSHIP = Membership(
    tuple(Member(name, role_of(name), None, ADDRESSES[name], PORT) for name in ADDRESSES),
    "http://127.0.0.1:8080",
    "smollm2",
)


def sockets_of(name: str) -> tuple[Socket, ...]:
    """The head's connections to its workers, or a worker's own two sockets."""
    if name == "head":
        return tuple(
            Socket(ADDRESSES["head"], 40000 + number, f"{ADDRESSES[worker]}:{PORT}")
            for number, worker in enumerate(("left", "right"))
        )
    peer = f"{ADDRESSES['head']}:{40000 + ('left', 'right').index(name)}"
    return (Socket(ADDRESSES[name], PORT), Socket(ADDRESSES[name], PORT, peer))


def observation(name: str) -> Observation:
    return Observation(
        node=name,
        system=System("linux", "x86_64", name, "root", "boot", 0, "/root", "/bin"),
        sockets=sockets_of(name),
        holders={},
        processes={name: process(name)},
        membership=MEMBERSHIP.to_json() if name == "head" else None,
        lock=None,
        vitals={name: Vitals("S", 1.0, 512.0)},
    )


WELL = Sight(
    named_head="head",
    seen={name: observation(name) for name in ADDRESSES},
    health=Health.OK,
    progress=ProgressReport("proven", "a token came"),
)


def with_node(sight: Sight, name: str, **changes: object) -> Sight:
    """The sight with some of what a node shows replaced."""
    changed: Mapping[str, Observation] = {name: replace(sight.seen[name], **changes)}  # type: ignore[arg-type]
    return replace(sight, seen={**sight.seen, **changed})


def without_node(sight: Sight, name: str) -> Sight:
    return replace(sight, seen={node: seen for node, seen in sight.seen.items() if node != name})


def ended(sight: Sight, name: str, exit_status: int) -> Sight:
    """The sight after a node's program has ended."""
    dead = process(name, ProcessState.ENDED, exit_status)
    return with_node(sight, name, processes={name: dead}, sockets=(), vitals={})
