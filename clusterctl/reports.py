"""What the commands answer: the documents of `--json`, as frozen types. The tables on screen show the same.

Scripts stand on these fields: adding one is free, renaming or dropping one is not. Unknown is null.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from clusterctl.llama.flags import Option
from clusterctl.model import Device, HostMemory, Problem

# --- check ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BuildReport:
    """A build of llama.cpp as the node's program states it."""

    tag: str | None
    number: int | None
    commit: str | None
    version: str | None


@dataclass(frozen=True, slots=True)
class ProgramsReport:
    """Where the programs lie on the node."""

    llama_server: str | None
    rpc_server: str | None


@dataclass(frozen=True, slots=True)
class NodeReport:
    """One node as `check` found it.

    `options` are those of the node's program that a plan may need; they are told only with a recipe.
    """

    name: str
    role: str
    reachable: bool
    os: str | None = None
    arch: str | None = None
    build: BuildReport | None = None
    rpc_protocol: str | None = None
    programs: ProgramsReport | None = None
    rpc_address: str | None = None
    devices: tuple[Device, ...] = ()
    problems: tuple[Problem, ...] = ()
    link_round_trip_ms: float | None = None
    link_mbit_s: float | None = None
    boot_id: str | None = None
    home: str | None = None
    memory: HostMemory | None = None
    options: Mapping[str, Option] | None = None
    cache_mib: int | None = None
    cache_free_mib: int | None = None


@dataclass(frozen=True, slots=True)
class SkewGroup:
    """Nodes on the same build."""

    build: str
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SkewEvidence:
    """One comparison of a node with the head: what was compared, the verdict, and why."""

    node: str
    subject: str
    verdict: str
    reason: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class SkewReport:
    """match | mismatch | unknown over all nodes; unknown is not a match."""

    status: str
    groups: tuple[SkewGroup, ...]
    evidence: tuple[SkewEvidence, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The answer of `check`. With a recipe, `model` and `draft` are what a plan needs of its models' headers."""

    ok: bool
    skew: SkewReport
    nodes: tuple[NodeReport, ...]
    model: Mapping[str, object] | None = None
    draft: Mapping[str, object] | None = None


# --- init ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class InitReport:
    """The answer of `init`: the inventory is written to `path`; `nodes` and `skew` are what `check` will say.

    `network` is null where there is none: on a single node, and where every worker has an address of its own.
    """

    ok: bool
    path: str
    nodes: tuple[NodeReport, ...]
    network: str | None
    head: str
    reasons: tuple[str, ...]
    skew: SkewReport


# --- the head's clients ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Access:
    """What the head asks of its clients; null for nothing. Never a key itself.

    `key_file` holds the keys, one a line, or `key_variable` does in the head's environment; `certificate` is the
    one to trust. The files are on the head's machine. `only_on` is the node on whose machine alone it answers,
    where that is not this one.
    """

    key_file: str | None = None
    key_variable: str | None = None
    certificate: str | None = None
    only_on: str | None = None

    @property
    def wants_key(self) -> bool:
        """Whether only those are served who send a key."""
        return self.key_file is not None or self.key_variable is not None


# --- up, down -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StepReport:
    """One ended step of `up` or `down`."""

    title: str
    node: str | None
    outcome: str
    seconds: float


@dataclass(frozen=True, slots=True)
class LeftReport:
    """Something that could not be cleared, why, and what to do next.

    What runs on a node that is not `seen` is unknown, and may be nothing.
    """

    node: str
    reason: str
    hint: str | None = None
    seen: bool = True


@dataclass(frozen=True, slots=True)
class ActionReport:
    """The answer of `up`, `down` and `recover`.

    `nodes` are those to which `down` was confined, and `spared` the others on which something still runs. Unless
    `waited`, nobody knows whether the head at `endpoint` serves yet.
    """

    ok: bool
    changed: bool
    endpoint: str | None
    steps: tuple[StepReport, ...]
    left: tuple[LeftReport, ...] = ()
    access: Access = Access()
    dry_run: bool = False
    waited: bool = True
    nodes: tuple[str, ...] = ()
    spared: tuple[str, ...] = ()


# --- status ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HeadStatus:
    """The head's process; `health` is ok | loading | no answer | stopped | unreachable.

    `resident_mib` is what the process holds of the machine's memory, `device_mib` what it holds of its cards.
    """

    node: str
    pid: int | None = None
    since: str | None = None
    url: str | None = None
    health: str = "stopped"
    resident_mib: float | None = None
    device_mib: float | None = None
    device_memory: tuple[Device, ...] = ()
    access: Access = Access()


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """One worker's process; `state` is serving | idle | stopped | unreachable | foreign | suspended.

    `attached` are the addresses that are connected to it: one, the head's, while it serves. `device_memory` is
    the memory of the node's cards, whoever uses them.
    """

    node: str
    endpoint: str
    pid: int | None = None
    state: str = "stopped"
    listening_on: tuple[str, ...] = ()
    rpc_protocol: str | None = None
    device_memory: tuple[Device, ...] = ()
    attached: tuple[str, ...] = ()
    resident_mib: float | None = None
    device_mib: float | None = None


@dataclass(frozen=True, slots=True)
class TrafficReport:
    """What the head does just now."""

    prompt_tok_s: float | None = None
    decode_tok_s: float | None = None
    slots_busy: int | None = None
    slots_total: int | None = None


@dataclass(frozen=True, slots=True)
class ProgressReport:
    """Whether tokens come out: `verdict` is proven | waiting | stuck | unknown; `detail` says how it is known."""

    verdict: str = "unknown"
    detail: str = ""


@dataclass(frozen=True, slots=True)
class OrphanReport:
    """A program that clusterctl started for this cluster, that runs, and that no cluster on record counts."""

    node: str
    name: str
    role: str
    pid: int | None
    since: str
    owner: str


@dataclass(frozen=True, slots=True)
class StatusReport:
    """The answer of `status`: state is up | degraded | wedged | down | loading | unknown.

    `wedged`: every process lives and the head says it is well, but no token comes. `desired` is up, or down once
    a `down` has begun; null if nothing is on record.
    """

    state: str
    head: HeadStatus
    workers: tuple[WorkerStatus, ...]
    traffic: TrafficReport = TrafficReport()
    problems: tuple[Problem, ...] = ()
    progress: ProgressReport = ProgressReport()
    orphans: tuple[OrphanReport, ...] = ()
    desired: str | None = None


# --- connect --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ConnectReport:
    """The answer of `connect`: `url` on this machine leads to `target` on the head's side of the network."""

    url: str
    node: str
    target: str
    wants_key: bool
    access: Access = Access()
