"""A machine of the lab: its own network, files, processes and hostname, a real sshd, a real llama.cpp."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import psutil
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from tests.lab.cpu import limit_cpu
from tests.lab.inspection import Listener, NodeProcess, listeners_beside, processes_beside
from tests.lab.slot import NETWORKS, Network
from tests.lab.switch import Port, Switch, network_of
from tests.lab.system import SEARCH_PATH, LabError, run, tool

HERE = Path(__file__).parent
SSH_PORT = 22
BOOT_S = 30
ENVIRONMENT = {"PATH": SEARCH_PATH, "HOME": "/root", "LC_ALL": "C.UTF-8"}
FILES = {
    "passwd": "root:x:0:0:root:/root:/bin/sh\nsshd:x:100:65534::/run/sshd:/usr/sbin/nologin\n",
    "shadow": "root:*:19000:0:99999:7:::\nsshd:!:19000::::::\n",
    "sshd_config": (HERE / "sshd_config").read_text(),
}


@dataclass(frozen=True, slots=True)
class Mount:
    """A folder of the machine that a node sees, read-only."""

    source: Path
    target: str


class Node:
    """A machine of the lab, running or powered off."""

    def __init__(self, port: Port, switch: Switch, mounts: Sequence[Mount], authorized_key: str) -> None:
        self._port = port
        self._switch = switch
        self._mounts = mounts
        self._process: subprocess.Popen[bytes] | None = None
        for folder in (self.home, self.directory / "root"):
            folder.mkdir(parents=True)
        for name, text in {**FILES, "authorized_keys": authorized_key}.items():
            (self.directory / name).write_text(text)

    def __repr__(self) -> str:
        return f"Node({self.name!r}, {self.public_address}, {self.private_address})"

    @property
    def name(self) -> str:
        """Its hostname, and its alias in the lab's SSH configuration."""
        return self._port.node

    @property
    def public_address(self) -> str:
        """Where its sshd is reached from the machine and from other nodes."""
        return self._port.address("public")

    @property
    def private_address(self) -> str:
        """Its address on the network that only nodes are on."""
        return self._port.address("private")

    @property
    def directory(self) -> Path:
        """Its keys, its home and the log of its sshd, on the machine."""
        return self._port.slot.directory / self.name

    @property
    def home(self) -> Path:
        """What the node sees as /root; it outlasts a power loss."""
        return self.directory / "home"

    @property
    def host_key(self) -> str:
        """The public key of its sshd: type and key, as in known_hosts."""
        return " ".join((self.directory / "host_key.pub").read_text().split()[:2])

    @property
    def sshd_log(self) -> str:
        """What its sshd, and the script that starts it, said since the last boot."""
        return (self.directory / "sshd.log").read_text(errors="replace")

    def boot(self) -> None:
        """Start its first process; `wait_until_reachable` tells when it serves.

        Call it from the main thread: the kernel ends the node with the *thread* that started it (prctl(2),
        PR_SET_PDEATHSIG), so that no node outlives its tests, however these end.
        """
        cidrs = [f"{self._port.address(network)}/24" for network in NETWORKS]
        mounts = [text for mount in self._mounts for text in (str(mount.source), mount.target)]
        inside = [str(HERE / "node.sh"), str(self.directory), self.name, tool("sshd"), *cidrs, *mounts]
        network = f"--net=/run/netns/{self._port.namespace}"
        enter = [tool("setpriv"), "--pdeathsig", "KILL", tool("nsenter"), network]
        isolate = [tool("unshare"), "--mount", "--pid", "--uts", "--ipc", "--fork", "--kill-child"]
        with (self.directory / "sshd.log").open("w") as log:
            self._process = subprocess.Popen(
                [*enter, *isolate, "sh", *inside],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=ENVIRONMENT,
                start_new_session=True,  # a Ctrl-C is for the tests, which then clean up
            )

    def wait_until_reachable(self) -> None:
        """Return when sshd has greeted; `LabError` with its log when the node died or took too long."""
        policy = Retrying(
            retry=retry_if_exception_type(OSError),
            wait=wait_fixed(0.01),
            stop=stop_after_delay(BOOT_S),
            reraise=True,
        )
        try:
            policy(self._greeting)
        except OSError as error:
            raise LabError(f"{self.name}: no sshd within {BOOT_S} s: {error}\n{self.sshd_log}") from error

    def _greeting(self) -> bytes:
        if self._process is None or self._process.poll() is not None:
            raise LabError(f"{self.name}: did not boot\n{self.sshd_log}")
        with socket.create_connection((self.public_address, SSH_PORT), timeout=1) as connection:
            greeting = connection.recv(4)
        if greeting != b"SSH-":
            raise ConnectionError(f"greeted with {greeting!r}")
        return greeting

    def run(
        self, argv: Sequence[str], *, check: bool = True, timeout_s: float = 30
    ) -> subprocess.CompletedProcess[str]:
        """Run a command on the node without SSH; with `check`, `LabError` unless it exits 0."""
        enter = [
            tool("nsenter"),
            f"--target={self._first_pid}",
            "--mount",
            "--pid",
            "--uts",
            "--ipc",
            "--net",
        ]
        root = f"/proc/{self._first_pid}/root"
        return run(
            [*enter, f"--root={root}", f"--wd={root}/root", "--", *argv],
            env=ENVIRONMENT,
            check=check,
            timeout_s=timeout_s,
        )

    def network(self) -> AbstractContextManager[None]:
        """Sockets that this thread opens inside are the node's: `with head.network(): httpx.get(…)`."""
        return network_of(self._port.namespace)

    def processes(self) -> list[NodeProcess]:
        """What runs on the node, by its own pids; the first is its sshd."""
        return processes_beside(self._first_pid)

    def listeners(self) -> list[Listener]:
        """The addresses and ports on which the node waits for TCP connections."""
        return listeners_beside(self._first_pid)

    def limit_cpu(self, fraction: float) -> None:
        """Let all that runs on the node, now or later, use at most this fraction of one processor."""
        group = f"{self._port.slot.prefix}{self.name}"
        limit_cpu(group, lambda: [process.machine_pid for process in self.processes()], fraction)

    def limit_link(self, mbit: float, networks: Sequence[Network] = NETWORKS) -> None:
        """Slow its cables down to a rate, each way by itself."""
        self._switch.limit_rate(self._port, networks, mbit)

    def cut_link(self, networks: Sequence[Network] = NETWORKS) -> None:
        """Pull its cables: packets vanish, and nobody is told."""
        self._switch.set_cables(self._port, networks, "down")

    def restore_link(self, networks: Sequence[Network] = NETWORKS) -> None:
        """Put its cables back, at full rate."""
        self._switch.limit_rate(self._port, networks, None)
        self._switch.set_cables(self._port, networks, "up")

    def power_off(self) -> None:
        """A power loss: all its processes end at once, and not a packet says so."""
        self.cut_link()
        self.kill()
        self._switch.unplug(self._port)

    def power_on(self) -> None:
        """Boot again, with the same home and host key and a new boot id; returns when sshd serves."""
        self._switch.plug_in([self._port])
        self.boot()
        self.wait_until_reachable()

    def kill(self) -> None:
        """End all its processes and wait until they are gone."""
        if self._process is not None:
            if self._process.poll() is None:
                os.kill(self._first_pid, signal.SIGKILL)
            # The kernel lets go of a first process when every other one of its namespace is gone.
            self._process.wait()
            self._process = None

    @property
    def _first_pid(self) -> int:
        if self._process is None:
            raise LabError(f"{self.name} is powered off")
        return psutil.Process(self._process.pid).children()[0].pid
