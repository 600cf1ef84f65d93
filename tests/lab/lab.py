"""A cluster of real machines, as far as one Linux machine can give them: see `Lab`."""

from __future__ import annotations

import atexit
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.lab.node import Mount, Node
from tests.lab.slot import claim_slot
from tests.lab.switch import Port, Switch
from tests.lab.system import run, tool
from tools.fetch import MODEL, fetch_all

MODELS = "/models"

# Neither the keys of whoever runs the tests, nor that every start of clusterctl compiles it anew.
NOT_INHERITED = {"SSH_AUTH_SOCK", "PYTHONDONTWRITEBYTECODE"}


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """What a test asks of a node.

    `build` is a name of `tools.fetch.BUILDS`, seen at `bin_dir`; None leaves the node without llama.cpp.
    `aside` are builds at /opt/BUILD, where nobody looks for them. `models` shows the model's folder at /models.
    """

    name: str
    build: str | None = "b10434"
    bin_dir: str = "/opt/llama.cpp/bin"
    models: bool = False
    aside: tuple[str, ...] = ()


class Lab:
    """Nodes on a public and a private network, and the SSH configuration of an operator who may reach them.

        with Lab([NodeSpec("head", models=True), NodeSpec("worker1")]) as lab:
            lab.ssh("head", "hostname")
            lab.nodes["worker1"].power_off()

    Several labs can stand side by side, in one process or many. All of it is gone after `close`, at the
    latest when the process ends; what a killed process left is removed when the next lab starts.
    """

    model_path = f"{MODELS}/{Path(MODEL.wanted).name}"

    def __init__(self, specs: Sequence[NodeSpec]) -> None:
        artifacts = fetch_all({name for spec in specs for name in _artifacts(spec)})
        self.nodes: dict[str, Node] = {}
        self.slot = claim_slot()
        atexit.register(self.close)
        self._switch = Switch(self.slot)
        try:
            self._start(specs, artifacts)
        except BaseException:
            self.close()
            raise

    def _start(self, specs: Sequence[NodeSpec], artifacts: Mapping[str, Path]) -> None:
        key = self._create_key()
        ports = [Port(self.slot, index, spec.name) for index, spec in enumerate(specs)]
        self._switch.create()
        self._switch.plug_in(ports)
        for port, spec in zip(ports, specs, strict=True):
            node = Node(port, self._switch, _mounts(spec, artifacts), key)
            node.boot()
            self.nodes[spec.name] = node
        for node in self.nodes.values():
            node.wait_until_reachable()
        self._write_ssh_configuration()

    @property
    def ssh_home(self) -> Path:
        """A home directory whose .ssh names, trusts and may enter every node."""
        return self.slot.directory / "operator"

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the operator's commands: `subprocess.run([…], env=lab.environment)`."""
        inherited = {name: value for name, value in os.environ.items() if name not in NOT_INHERITED}
        return {**inherited, "HOME": str(self.ssh_home)}

    def ssh(self, node: str, command: str, *, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a shell command on a node through OpenSSH; with `check`, `LabError` unless it exits 0."""
        # OpenSSH looks up the home directory in passwd, never in HOME.
        config = self.ssh_home / ".ssh" / "config"
        return run([tool("ssh"), "-F", str(config), node, command], env=self.environment, check=check)

    def close(self) -> None:
        """End all nodes and remove every trace of the lab; may be called again."""
        atexit.unregister(self.close)
        for node in self.nodes.values():
            node.kill()
        self.nodes = {}
        self.slot.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _create_key(self) -> str:
        folder = self.ssh_home / ".ssh"
        folder.mkdir(mode=0o700, parents=True)
        key = folder / "id_ed25519"
        run([tool("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-C", "operator", "-f", str(key)])
        return key.with_suffix(".pub").read_text()

    def _write_ssh_configuration(self) -> None:
        folder = self.ssh_home / ".ssh"
        nodes = self.nodes.values()
        aliases = [f"Host {node.name}\n  HostName {node.public_address}\n" for node in nodes]
        everywhere = (
            "Host *\n"
            "  User root\n"
            f"  IdentityFile {folder / 'id_ed25519'}\n"
            "  IdentitiesOnly yes\n"
            f"  UserKnownHostsFile {folder / 'known_hosts'}\n"
            "  StrictHostKeyChecking yes\n"
            "  BatchMode yes\n"
        )
        (folder / "config").write_text("".join([*aliases, everywhere]))
        known = [f"{node.public_address} {node.host_key}\n" for node in nodes]
        (folder / "known_hosts").write_text("".join(known))


def _artifacts(spec: NodeSpec) -> list[str]:
    return [*([spec.build] if spec.build else []), *spec.aside, *(["model"] if spec.models else [])]


def _mounts(spec: NodeSpec, artifacts: Mapping[str, Path]) -> list[Mount]:
    build = [Mount(artifacts[spec.build], spec.bin_dir)] if spec.build else []
    aside = [Mount(artifacts[name], f"/opt/{name}") for name in spec.aside]
    models = [Mount(artifacts["model"].parent, MODELS)] if spec.models else []
    return build + aside + models
