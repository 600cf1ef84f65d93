"""What `plan` answers: the document of `plan --json`, as frozen types, under the rules of reports.py."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from clusterctl.model import Advice, Estimate


@dataclass(frozen=True, slots=True)
class BudgetStepReport:
    """One step of the reckoning that ends in a device's budget: what was looked at, and what it left."""

    cause: str
    left_mib: float


@dataclass(frozen=True, slots=True)
class DeviceReport:
    """What one device is to hold; `layers` is [first, last], null where it has none.

    `margin_mib` is kept free of the budget for what the backend takes beside.
    """

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
    margin_mib: float = 0.0
    budget_steps: tuple[BudgetStepReport, ...] = ()


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
    budget_steps: tuple[BudgetStepReport, ...] = ()


@dataclass(frozen=True, slots=True)
class DraftReport:
    """The draft model: what it holds on a device of the head, null for none, and in the head's own memory."""

    node: str
    device: str | None
    model_mib: float
    kv_mib: float
    compute_mib: float
    total_mib: float
    host_mib: float


@dataclass(frozen=True, slots=True)
class AdvisoryReport:
    """A known fault of llama.cpp that was looked for; `applies` is yes | no | unknown."""

    code: str
    applies: str
    message: str
    source: str


@dataclass(frozen=True, slots=True)
class CommandReport:
    """The exact call of one node's program."""

    node: str
    role: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PlanReport:
    """The answer of `plan`. `notes` say what about the model is not known for certain."""

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
    draft: DraftReport | None = None
    notes: tuple[str, ...] = ()
    advisories: tuple[AdvisoryReport, ...] = ()
