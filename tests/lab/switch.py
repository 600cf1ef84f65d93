"""The switch of a lab: a public and a private bridge, and the cables from them to the nodes.

The bridges live in a namespace of their own, so that no firewall of the machine meddles. The machine itself
has an address on the public network and none on the private one, as an operator's laptop would.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.lab.slot import NETWORKS, Network, Slot
from tests.lab.system import ip, run, tool

MACHINE = 1
FIRST_NODE = 11
CLONE_NEWNET = 0x40000000  # linux/sched.h


@dataclass(frozen=True, slots=True)
class Port:
    """A node's place at the switch: its network namespace and one cable to each network."""

    slot: Slot
    index: int
    node: str

    @property
    def namespace(self) -> str:
        """The node's network namespace; its interfaces are called as the networks are."""
        return f"{self.slot.prefix}node-{self.node}"

    def address(self, network: Network) -> str:
        """The node's IPv4 address on a network."""
        return self.slot.address(network, FIRST_NODE + self.index)

    def hardware_address(self, network: Network) -> str:
        """The MAC address of the node's interface: its neighbours remember it over a power loss."""
        return f"02:c1:ab:{self.slot.number:02x}:{NETWORKS.index(network):02x}:{self.index:02x}"

    def cable_end(self, network: Network) -> str:
        """The interface at the switch that the node's interface of this network is cabled to."""
        return f"{self.index}-{network}"


@dataclass(frozen=True, slots=True)
class Switch:
    """Both networks of a lab."""

    slot: Slot

    @property
    def namespace(self) -> str:
        """The network namespace that holds the bridges."""
        return f"{self.slot.prefix}switch"

    def create(self) -> None:
        """Make the bridges, and the machine's cable to the public one."""
        ip(
            [
                f"netns add {self.namespace}",
                f"link add {self.slot.uplink} type veth peer name uplink netns {self.namespace}",
                f"address add {self.slot.address('public', MACHINE)}/24 dev {self.slot.uplink}",
                f"link set {self.slot.uplink} up",
                # Else the default route would take it: some gateways answer for every address.
                f"route add unreachable {self.slot.subnet('private')}",
            ]
        )
        # The kernel asks three times, once a second, who has an address (arp(7)). Nodes boot in a tenth of
        # that: ask more often, and give up as late. node.sh does the same.
        settings = Path("/proc/sys/net/ipv4/neigh", self.slot.uplink)
        (settings / "retrans_time_ms").write_text("20")
        (settings / "mcast_solicit").write_text("150")
        bridges = [f"link add {network} up type bridge" for network in NETWORKS]
        self._ip([*bridges, "link set uplink master public up"])

    def plug_in(self, ports: Sequence[Port]) -> None:
        """Make the namespaces of nodes and cable them up."""
        ip([f"netns add {port.namespace}" for port in ports])
        self._ip([line for port in ports for network in NETWORKS for line in _cable(port, network)])

    def unplug(self, port: Port) -> None:
        """Remove a node's cables and namespace."""
        self._ip([f"link delete {port.cable_end(network)}" for network in NETWORKS])
        ip([f"netns delete {port.namespace}"])

    def set_cables(self, port: Port, networks: Sequence[Network], state: Literal["up", "down"]) -> None:
        """Cut or restore a node's cables; cut, packets vanish and nobody is told."""
        self._ip([f"link set {port.cable_end(network)} {state}" for network in networks])

    def limit_rate(self, port: Port, networks: Sequence[Network], mbit: float | None) -> None:
        """Slow a node's cables down, each way by itself; None takes the limit off."""
        for network in networks:
            for namespace, device in ((self.namespace, port.cable_end(network)), (port.namespace, network)):
                where = ["-netns", namespace, "qdisc", "replace", "dev", device, "root"]
                run([tool("tc"), *where, *_queue(mbit)])

    def _ip(self, commands: Sequence[str]) -> None:
        ip(commands, namespace=self.namespace)


def _cable(port: Port, network: Network) -> list[str]:
    node_end = f"{network} address {port.hardware_address(network)} netns {port.namespace}"
    return [
        f"link add {port.cable_end(network)} type veth peer name {node_end}",
        f"link set {port.cable_end(network)} master {network} up",
    ]


def _queue(mbit: float | None) -> list[str]:
    if mbit is None:
        return ["noqueue"]
    # A bucket smaller than what one timer tick lets through would slow fast links below their rate.
    bucket_bytes = max(65536, round(mbit * 1e6 / 8 / 100))
    return ["tbf", "rate", f"{mbit}mbit", "burst", str(bucket_bytes), "latency", "200ms"]


@contextlib.contextmanager
def network_of(namespace: str) -> Iterator[None]:
    """Sockets that this thread opens inside belong to a network namespace."""
    with open("/proc/thread-self/ns/net") as home, Path("/run/netns", namespace).open() as away:
        _enter(away.fileno())
        try:
            yield
        finally:
            _enter(home.fileno())


def _enter(descriptor: int) -> None:
    # os.setns exists from Python 3.12 on.
    if ctypes.CDLL(None, use_errno=True).setns(descriptor, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")
