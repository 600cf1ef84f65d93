"""The frozen values that flow from step to step. Sizes carry their unit in the name; unknown is `None`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

MIB = 1024 * 1024


class Role(StrEnum):
    """What a node does in the cluster."""

    HEAD = "head"
    WORKER = "worker"


class Severity(StrEnum):
    """Whether a problem stops `up` (error) or is only shown (warning, note)."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a node: a stable code, what was seen, and the next step."""

    code: str
    severity: Severity
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Build:
    """What a program says of its own build. Every part may be unknown, and unknown never equals unknown.

    `packager` is what stands in the commit's place, `Debian`: it tells two packages of one number apart.
    """

    number: int | None = None
    commit: str | None = None
    version: str | None = None
    packager: str | None = field(default=None, compare=False)

    @property
    def tag(self) -> str | None:
        """The release tag, `b11434`, where the number is known."""
        return None if self.number is None else f"b{self.number}"

    def __str__(self) -> str:
        name = self.tag or self.version or "unknown build"
        return f"{name} ({self.commit})" if self.commit else name


@dataclass(frozen=True, slots=True)
class Device:
    """A compute device as a llama.cpp program lists it; sizes in MiB, `None` where the listing can't tell."""

    name: str
    description: str
    total_mib: int | None
    free_mib: int | None


@dataclass(frozen=True, slots=True)
class HostMemory:
    """The memory of a machine itself, `None` where its system does not tell.

    `allowed_mib` is what a container or systemd leaves to a node's programs, `None` where nothing limits them.
    """

    total_mib: int | None = None
    available_mib: int | None = None
    allowed_mib: int | None = None


@dataclass(frozen=True, slots=True)
class Program:
    """An executable found on a node. `fingerprint` changes whenever the file does.

    `real_path` is where links lead in the end, and so where its libraries lie.
    """

    path: str
    fingerprint: str
    real_path: str = ""

    @property
    def directory(self) -> str:
        """The directory in which the file itself lies."""
        return (self.real_path or self.path).rpartition("/")[0]


@dataclass(frozen=True, slots=True)
class Address:
    """An IPv4 address of a node and the interface that carries it."""

    interface: str
    address: str
    prefix_length: int


@dataclass(frozen=True, slots=True)
class Listener:
    """A listening TCP socket; `pid` and `program` are `None` when the SSH user may not see them."""

    address: str
    port: int
    pid: int | None = None
    program: str | None = None


# --- progress -----------------------------------------------------------------------------------------


class Outcome(StrEnum):
    """How a step stands. `WOULD` is a change that a dry run left out; `WARNING` is no step, but to be seen."""

    STARTED = "started"
    WAITING = "waiting"
    DONE = "done"
    UNCHANGED = "unchanged"
    WOULD = "would change"
    FAILED = "failed"
    UNDONE = "undone"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Step:
    """One event. `node` is `None` where the step is the whole cluster's; `detail` is for people."""

    title: str
    outcome: Outcome
    node: str | None = None
    seconds: float = 0.0
    detail: str = ""

    @property
    def ended(self) -> bool:
        """Whether this is the last word on its step."""
        return self.outcome not in (Outcome.STARTED, Outcome.WAITING)


# --- planning -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Workload:
    """How the model will be served: everything of a recipe that costs memory or time.

    `slots` is `--parallel`; `cpu_layers` layers (the first ones) stay on the head's CPU; `draft_tokens` is how
    many tokens of each slot are drafted at once, at most, to be checked together.
    """

    context: int
    slots: int = 1
    kv_unified: bool = False
    kv_type_k: str = "f16"
    kv_type_v: str = "f16"
    flash_attention: bool = True
    batch_logical: int = 2048
    batch_physical: int = 512
    cpu_layers: int = 0
    swa_full: bool = False
    draft_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes of one device, or of the head's own memory, in llama.cpp's three columns."""

    model_bytes: int = 0
    kv_bytes: int = 0
    compute_bytes: int = 0

    @property
    def total_bytes(self) -> int:
        """Sum of the three columns."""
        return self.model_bytes + self.kv_bytes + self.compute_bytes


@dataclass(frozen=True, slots=True)
class Link:
    """The network between the head and a worker: its bit rate, and the round trip of a small packet."""

    gbit_s: float | None = None
    round_trip_ms: float | None = None

    @classmethod
    def measured(cls, mbit_s: float | None, round_trip_ms: float | None) -> Link:
        """The link with this throughput in Mbit/s."""
        return cls(None if mbit_s is None else mbit_s / 1000, round_trip_ms)


UNKNOWN_LINK = Link()


@dataclass(frozen=True, slots=True)
class BudgetStep:
    """One step of the reckoning that ends in a device's budget: what was looked at, and what it left."""

    cause: str
    left_bytes: int


@dataclass(frozen=True, slots=True)
class Offer:
    """A device that may take layers: where it is, what it may hold, how fast it is.

    `rpc_endpoint` is `address:port` for a worker's device and `None` for the head's own. Offers are listed in
    device order: workers as in the inventory, the head's own last. `budget_steps` say how the budget came about.
    `bandwidth_gb_s` and `fp16_tflop_s` are the user's own figures.
    """

    node: str
    device: str
    description: str
    backend: str | None
    rpc_endpoint: str | None
    budget_bytes: int
    bandwidth_gb_s: float | None = None
    link: Link = UNKNOWN_LINK
    budget_steps: tuple[BudgetStep, ...] = ()
    fp16_tflop_s: float | None = None

    @property
    def is_local(self) -> bool:
        """Whether the device belongs to the head itself."""
        return self.rpc_endpoint is None

    @property
    def label(self) -> str:
        """`node/device`, as a recipe's manual split names it."""
        return f"{self.node}/{self.device}"


@dataclass(frozen=True, slots=True)
class Share:
    """What one device gets: `slots` counts its layers plus one if it holds the output layer."""

    offer: Offer
    first_layer: int | None
    last_layer: int | None
    has_output: bool
    slots: int
    memory: Memory
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Advice:
    """A suggestion or a warning about the plan."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Estimate:
    """Expected speed, `None` where the facts carry no figure; `bound_by` names the bottleneck in words."""

    decode_tok_s: float | None = None
    decode_ceiling_tok_s: float | None = None
    prefill_tok_s: float | None = None
    prefill_ceiling_tok_s: float | None = None
    load_s: float | None = None
    bound_by: str = ""


@dataclass(frozen=True, slots=True)
class Split:
    """Layers on devices, in device order; `unused` names every device left out, with the reason."""

    strategy: str
    n_layer: int
    shares: tuple[Share, ...]
    unused: tuple[tuple[Offer, str], ...]
    host: Memory
    cpu_layers: int = 0

    @property
    def tensor_split(self) -> tuple[int, ...]:
        """Integer slot counts for `--tensor-split`, in device order."""
        return tuple(share.slots for share in self.shares)


@dataclass(frozen=True, slots=True)
class NodeCommand:
    """The exact program call of one node; `env` holds only what clusterctl sets."""

    node: str
    role: Role
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
