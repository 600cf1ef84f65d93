"""A slot: the number that makes one lab's names and addresses its own among the labs of this machine."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import signal
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.lab.cpu import remove_cpu_groups
from tests.lab.system import LabError, ip, run, tool

SLOTS = range(64)

Network = Literal["public", "private"]
NETWORKS: tuple[Network, ...] = ("public", "private")
SUBNET_PREFIX: dict[Network, str] = {"public": "10.231", "private": "10.232"}


@dataclass(frozen=True, slots=True)
class Slot:
    """What the lab with this number calls its things; holds the claim on the number until `release`."""

    number: int
    claim: socket.socket

    @property
    def prefix(self) -> str:
        """Begins the name of every namespace and control group of this lab."""
        return f"clab{self.number}-"

    @property
    def uplink(self) -> str:
        """The interface by which the machine itself sees the public network."""
        return f"clab{self.number}"

    @property
    def directory(self) -> Path:
        """Homes, keys and logs of the lab's nodes."""
        return Path(f"/var/lib/clusterctl-lab-{self.number}")

    def address(self, network: Network, host: int) -> str:
        """The IPv4 address of a host number; each network is a /24."""
        return f"{SUBNET_PREFIX[network]}.{self.number}.{host}"

    def subnet(self, network: Network) -> str:
        """All addresses of a network."""
        return f"{self.address(network, 0)}/24"

    def release(self) -> None:
        """Remove everything that bears the slot's names, then let others have the number; once only."""
        if self.claim.fileno() >= 0:
            self.sweep()
            self.claim.close()

    def sweep(self) -> None:
        """Remove processes, links, namespaces, control groups and files of this lab or of one before it."""
        namespaces = [path.name for path in Path("/run/netns").glob(f"{self.prefix}*")]
        for namespace in namespaces:
            _kill_processes_in(namespace)
        commands = [f"netns delete {namespace}" for namespace in namespaces]
        if Path("/sys/class/net", self.uplink).exists():
            # Before its namespace, which goes in the background: the next lab may want the name at once.
            commands = [f"link delete {self.uplink}", f"route flush {self.subnet('private')}", *commands]
        ip(commands)
        remove_cpu_groups(self.prefix)
        shutil.rmtree(self.directory, ignore_errors=True)


def claim_slot() -> Slot:
    """A free slot; leftovers of labs whose process has died are removed on the way."""
    claimed: Slot | None = None
    for number in SLOTS:
        if claim := _claim(number):
            slot = Slot(number, claim)
            slot.sweep()
            if claimed:
                claim.close()
            else:
                claimed = slot
    if claimed is None:
        raise LabError(f"all {len(SLOTS)} lab slots of this machine are in use")
    return claimed


def _claim(number: int) -> socket.socket | None:
    """An abstract socket as a lock: the kernel drops it with the process, and no file stays behind."""
    claim = socket.socket(socket.AF_UNIX)
    try:
        claim.bind(f"\0clusterctl-lab-{number}")
    except OSError as error:
        claim.close()
        if error.errno == errno.EADDRINUSE:
            return None
        raise
    return claim


def _kill_processes_in(namespace: str) -> None:
    for pid in run([tool("ip"), "netns", "pids", namespace], check=False).stdout.split():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)
