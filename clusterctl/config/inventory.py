"""The inventory: where things run. Every key of the file, checked, with defaults merged into each node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag

from clusterctl.config.addresses import Host, PrivateNetwork, RpcAddress
from clusterctl.config.faults import suggestion
from clusterctl.config.fields import (
    AnyText,
    Build,
    ClusterName,
    Count,
    CountOrZero,
    DeviceName,
    Interface,
    Line,
    NodeName,
    Path,
    Port,
    PositiveNumber,
    Truth,
    User,
    VariableName,
    Version,
    Whole,
)
from clusterctl.config.section import Section
from clusterctl.errors import UsageError
from clusterctl.model import Role

Backend = Literal["cuda", "rocm", "vulkan", "metal", "sycl", "cpu"]
Connection = Literal["ssh", "local"]


def _each_once(devices: tuple[str, ...]) -> tuple[str, ...]:
    twice = next((device for device in devices if devices.count(device) > 1), None)
    if twice:
        raise ValueError(f"must name each device once; `{twice}` stands there again")
    return devices


def _number_or_map(given: object) -> str:
    return "map" if isinstance(given, Mapping) else "number"


DeviceFigure = Annotated[
    Annotated[PositiveNumber, Tag("number")] | Annotated[Mapping[DeviceName, PositiveNumber], Tag("map")],
    Discriminator(_number_or_map),
]


def _figure_of(figures: Mapping[str, float] | float | None, device: str) -> float | None:
    return figures.get(device) if isinstance(figures, Mapping) else figures


class Ssh(Section):
    """How to log in. What is left out comes from `~/.ssh/config`, then from SSH's own defaults."""

    user: User | None = None
    """User to log in as."""
    port: Port | None = None
    """Port of the SSH server."""
    identity_file: Line | None = None
    """Private key, a path on this machine."""
    known_hosts: Line | None = None
    """File with the host keys to trust, a path on this machine. Host keys are always checked."""
    connect_timeout_s: Annotated[int, Whole(1, 3600)] = Field(default=10, alias="connect_timeout")
    """Seconds to wait for a connection."""


class Llama(Section):
    """The llama.cpp programs of a node."""

    bin_dir: Path | None = None
    """Directory of llama-server and ggml-rpc-server. Left out: PATH and well-known places are searched."""
    build: Build | None = None
    """Build the node must have: a tag such as b11434, or a commit. Left out: any, if all nodes agree."""


class Rpc(Section):
    """The RPC server of a worker."""

    port: Port = 50052
    """TCP port the worker listens on."""
    address: RpcAddress | None = None
    """Private IPv4 address the worker listens on. Left out: the one in `network`, or on `interface`."""
    interface: Interface | None = None
    """Network interface whose IPv4 address the worker listens on."""
    devices: Annotated[tuple[DeviceName, ...], Field(min_length=1), AfterValidator(_each_once)] | None = None
    """Devices the worker offers, as llama.cpp lists them. Left out: its accelerators, or the CPU if none."""
    threads: Count | None = None
    """CPU threads of the worker, for what runs on its CPU. Left out: the program's own default."""
    cache: Truth = False
    """Keep large tensors on the worker's disk, so that the next start needn't send them again."""


class MemoryLimits(Section):
    """How much memory of a node the cluster may use."""

    reserve_mib: CountOrZero | None = None
    """MiB to leave free. Left out: a cautious amount that depends on the device."""
    limit_mib: Count | None = None
    """MiB that may be used at most. Left out: all that is free, less the reserve."""


class Speed(Section):
    """How fast a node's devices are; measured or from the data sheet."""

    bandwidth_gb_s: DeviceFigure | None = None
    """Memory bandwidth in GB/s: one number for every device of the node, or a map from device to number."""
    fp16_tflop_s: DeviceFigure | None = None
    """Dense FP16 arithmetic in TFLOP/s, for the estimate of prefill: one number, or a map as for bandwidth."""

    def bandwidth_of(self, device: str) -> float | None:
        """Return the GB/s of a device, `None` where the inventory has no figure."""
        return _figure_of(self.bandwidth_gb_s, device)

    def fp16_tflop_s_of(self, device: str) -> float | None:
        """Return the TFLOP/s of a device, `None` where the inventory has no figure."""
        return _figure_of(self.fp16_tflop_s, device)


class NodeSettings(Section):
    """What may stand in `defaults` as well as in a node; the node's own value wins."""

    connection: Connection = "ssh"
    """`ssh`, or `local` for the machine that clusterctl itself runs on."""
    backend: Backend | None = None
    """Kind of device that must be found there. Left out: any, as for a box with several vendors."""
    serve_only: Truth = False
    """The head only serves: none of its own devices take layers."""
    ssh: Ssh = Ssh()
    """How to log in."""
    llama: Llama = Llama()
    """The llama.cpp programs."""
    rpc: Rpc = Rpc()
    """The RPC server of a worker."""
    memory: MemoryLimits = MemoryLimits()
    """How much memory may be used."""
    speed: Speed = Speed()
    """How fast the devices are, for the speed-aware split and the estimate."""
    env: Mapping[VariableName, AnyText] = Field(default_factory=dict)
    """Environment variables of the llama.cpp programs on this node. Those that would undo a plan are refused."""
    labels: Mapping[Line, AnyText] = Field(default_factory=dict)
    """Notes of your own; they change nothing."""


class Node(NodeSettings):
    """One machine, with the inventory's defaults merged in."""

    name: NodeName
    """Unique name of the node: a-z, 0-9 and `-`."""
    host: Host = Field(default_factory=lambda node: node.get("name", ""))
    """SSH destination: an address, a name, or a Host of `~/.ssh/config`. Left out: the node's name."""
    role: Role
    """`head` runs llama-server, `worker` lends its devices over RPC. There is exactly one head."""

    def shares_machine_with(self, other: Node) -> bool:
        """Whether both nodes are certainly the same machine."""
        return self.machine == other.machine

    @property
    def machine(self) -> tuple[str, ...]:
        """What tells this node's machine from others: two nodes that are equal in this share a machine."""
        if self.connection == "local":
            return ("local",)
        return ("ssh", self.host.lower(), str(self.ssh.port or 22))


class Inventory(Section):
    """Where the cluster runs: its machines and how to reach them."""

    version: Version
    """Version of the file format."""
    cluster: ClusterName
    """Name of the cluster: a-z, 0-9 and `-`. Names its state and its lock on the nodes."""
    network: PrivateNetwork | None = None
    """Private IPv4 network of the RPC traffic. A node may override it: `rpc.address` or `rpc.interface`."""
    defaults: NodeSettings = NodeSettings()
    """Settings for every node; maps are merged, a node's own value wins."""
    nodes: Annotated[tuple[Node, ...], Field(min_length=1)]
    """The machines. With a head alone, its own devices share the layers and no RPC is used."""

    @property
    def head(self) -> Node:
        """The node that runs llama-server."""
        return next(node for node in self.nodes if node.role is Role.HEAD)

    @property
    def workers(self) -> tuple[Node, ...]:
        """The nodes that lend their devices, in the order of the file."""
        return tuple(node for node in self.nodes if node.role is Role.WORKER)

    def node(self, name: str) -> Node:
        """Return the node of this name.

        Raises:
            UsageError: no node has it.
        """
        names = [node.name for node in self.nodes]
        if name not in names:
            hint = f"the inventory has: {', '.join(names)}"
            raise UsageError(f"no node is called `{name}`{suggestion(name, names)}", hint=hint)
        return self.nodes[names.index(name)]
