"""What the commands answer: the documents of `--json`, as frozen types. The tables on screen show the same.

Scripts stand on these fields: adding one is free, renaming or dropping one is not. Unknown is null.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from clusterctl.model import Advice, Device, Estimate, Problem

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
    """One node as `check` found it."""

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
    """The answer of `check`."""

    ok: bool
    skew: SkewReport
    nodes: tuple[NodeReport, ...]


# --- plan -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DeviceReport:
    """What one device is to hold; `layers` is [first, last], null where it has none."""

    node: str
    device: str
    rpc_name: str
    layers: tuple[int, int] | None
    output: bool
    model_mib: float
    kv_mib: float
    compute_mib: float
    total_mib: float
    budget_mib: float
    reason: str = ""


@dataclass(frozen=True, slots=True)
class HostReport:
    """What the head's own memory is to hold."""

    model_mib: float
    kv_mib: float
    compute_mib: float
    total_mib: float
    budget_mib: float | None = None


@dataclass(frozen=True, slots=True)
class UnusedReport:
    """A device without layers, and why."""

    node: str
    device: str
    reason: str


@dataclass(frozen=True, slots=True)
class CommandReport:
    """The exact call of one node's program."""

    node: str
    role: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PlanReport:
    """The answer of `plan`."""

    fits: bool
    strategy: str
    n_layer: int
    devices: tuple[DeviceReport, ...]
    host: HostReport
    unused: tuple[UnusedReport, ...]
    device_order: tuple[str, ...]
    tensor_split: tuple[int, ...]
    commands: tuple[CommandReport, ...]
    estimate: Estimate
    advice: tuple[Advice, ...] = ()


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
    """Something that `down` could not clear, and why."""

    node: str
    reason: str


@dataclass(frozen=True, slots=True)
class ActionReport:
    """The answer of `up` and `down`."""

    ok: bool
    changed: bool
    endpoint: str | None
    steps: tuple[StepReport, ...]
    left: tuple[LeftReport, ...] = ()


# --- status ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HeadStatus:
    """The head's process; `health` is ok | loading | no answer | stopped."""

    node: str
    pid: int | None = None
    since: str | None = None
    url: str | None = None
    health: str = "stopped"


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """One worker's process; `state` is serving | idle | stopped | unreachable | foreign."""

    node: str
    endpoint: str
    pid: int | None = None
    state: str = "stopped"
    listening_on: tuple[str, ...] = ()
    rpc_protocol: str | None = None
    device_memory: tuple[Device, ...] = ()


@dataclass(frozen=True, slots=True)
class TrafficReport:
    """What the head does just now."""

    prompt_tok_s: float | None = None
    decode_tok_s: float | None = None
    slots_busy: int | None = None
    slots_total: int | None = None


@dataclass(frozen=True, slots=True)
class StatusReport:
    """The answer of `status`: state is up | degraded | down | loading | unknown."""

    state: str
    head: HeadStatus
    workers: tuple[WorkerStatus, ...]
    traffic: TrafficReport = TrafficReport()
    problems: tuple[Problem, ...] = ()
