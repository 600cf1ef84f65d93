"""A person who runs clusterctl: an inventory, a recipe, and a home directory with the keys to a lab's nodes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Self

from tests.lab.lab import Lab
from tests.lab.node import SSH_PORT, Node

CLUSTERCTL = str(Path(sys.executable).with_name("clusterctl"))
# Tests that run under `nohup` or in a script's background would hand on that SIGHUP or SIGINT is ignored.
DEFAULT_SIGNALS = ("env", "--default-signal")
TIMEOUT_S = 120
HTTP_PORT = 8080
RPC_PORT = 50052

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Finished:
    """What a command left."""

    exit_code: int
    stdout: str
    stderr: str

    def __post_init__(self) -> None:
        for text in (self.stdout, self.stderr):
            assert "Traceback" not in text, text

    @property
    def document(self) -> dict[str, Any]:
        """The one JSON document on stdout."""
        document = json.loads(self.stdout)
        assert isinstance(document, dict)
        return document


class Running:
    """A command that still runs."""

    def __init__(self, process: subprocess.Popen[str], stdout: IO[str]) -> None:
        self._process = process
        self._stdout = stdout
        self._lines: list[str] = []

    @property
    def pid(self) -> int:
        """Its process on this machine."""
        return self._process.pid

    @property
    def printed(self) -> str:
        """What it wrote to stdout so far."""
        return os.pread(self._stdout.fileno(), 1 << 20, 0).decode()

    def wait_for(self, text: str) -> None:
        """Return as soon as a line with `text` stands on stderr; `AssertionError` if it ends without."""
        assert any(text in line for line in self._read()), "".join(self._lines)

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def interrupt(self, number: signal.Signals = signal.SIGINT) -> Finished:
        """Send it a signal and wait for its end."""
        self.send(number)
        return self.finish()

    def close_stderr(self) -> None:
        """Stop reading what it says, as `| head` does."""
        assert self._process.stderr is not None
        self._process.stderr.close()

    def finish(self) -> Finished:
        """Wait for its end."""
        for _ in self._read():
            pass
        exit_code = self._process.wait()
        self._stdout.seek(0)
        return Finished(exit_code, self._stdout.read(), "".join(self._lines))

    def _read(self) -> Iterator[str]:
        stderr = self._process.stderr
        assert stderr is not None
        while not stderr.closed and (line := stderr.readline()):
            self._lines.append(line)
            yield line

    def close(self) -> None:
        """End it, whatever it does."""
        self._process.kill()
        self._process.wait()
        self.close_stderr()
        self._stdout.close()


@dataclass(frozen=True, slots=True)
class Operator:
    """`inventory` and `recipe` are what the files hold; `home` is another than the lab's own, if set."""

    lab: Lab
    folder: Path
    inventory: Document
    recipe: Document
    home: Path | None = None

    def with_recipe(self, **settings: object) -> Self:
        """The same operator with some keys of the recipe replaced."""
        return replace(self, recipe={**self.recipe, **settings})

    def with_inventory(self, inventory: Document) -> Self:
        """The same operator with another inventory."""
        return replace(self, inventory=inventory)

    def with_node(self, name: str, **settings: object) -> Self:
        """The same operator with some keys of a node replaced."""
        nodes = [{**node, **settings} if node["name"] == name else node for node in self.inventory["nodes"]]
        return self.with_inventory({**self.inventory, "nodes": nodes})

    def without_node(self, name: str) -> Self:
        """The same operator with a node removed from the inventory."""
        nodes = [node for node in self.inventory["nodes"] if node["name"] != name]
        return self.with_inventory({**self.inventory, "nodes": nodes})

    def run(self, *arguments: str) -> Finished:
        """Run one command of clusterctl to its end."""
        done = subprocess.run(
            self._argv(arguments),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=self._environment,
            timeout=TIMEOUT_S,
            check=False,
        )
        return Finished(done.returncode, done.stdout, done.stderr)

    def succeed(self, *arguments: str) -> Finished:
        """Run one command, which must exit 0."""
        done = self.run(*arguments)
        assert done.exit_code == 0, f"{arguments}: exit {done.exit_code}\n{done.stdout}{done.stderr}"
        return done

    @contextmanager
    def running(self, *arguments: str) -> Iterator[Running]:
        """One command in the background, ended at the latest with the body or after `TIMEOUT_S`."""
        with tempfile.TemporaryFile("w+") as stdout:
            process = subprocess.Popen(
                [*DEFAULT_SIGNALS, *self._argv(arguments)],
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=subprocess.PIPE,
                text=True,
                env=self._environment,
            )
            overdue = threading.Timer(TIMEOUT_S, process.kill)
            overdue.start()
            command = Running(process, stdout)
            try:
                yield command
            finally:
                overdue.cancel()
                command.close()

    def status(self) -> dict[str, Any]:
        """The document of `status`."""
        return self.run("status", "--json").document

    def _argv(self, arguments: Sequence[str]) -> list[str]:
        files = Path(tempfile.mkdtemp(dir=self.folder))
        inventory, recipe = files / "inventory.yaml", files / "recipe.yaml"
        inventory.write_text(json.dumps(self.inventory))
        recipe.write_text(json.dumps(self.recipe))
        return [CLUSTERCTL, "-i", str(inventory), "-r", str(recipe), *arguments]

    @property
    def _environment(self) -> dict[str, str]:
        home = {"HOME": str(self.home)} if self.home else {}
        return {**self.lab.environment, **home, "COLUMNS": "200"}


def operator_of(lab: Lab, folder: Path, head: str = "head", workers: Sequence[str] = ()) -> Operator:
    """An operator of a CPU cluster with these nodes of a lab, for the lab's small model."""
    roles = {**dict.fromkeys(workers, "worker"), head: "head"}
    inventory = {
        "version": 1,
        "cluster": "lab",
        "network": lab.slot.subnet("private"),
        "defaults": {"backend": "cpu", "rpc": {"port": RPC_PORT, "threads": 1}, "memory": {"limit_mib": 1024}},
        "nodes": [{"name": name, "role": role} for name, role in roles.items()],
    }
    recipe = {
        "version": 1,
        "name": "smollm2",
        "model": {"path": lab.model_path},
        "context": 512,
        "parallel": 1,
        "server": {"port": HTTP_PORT, "extra_args": ["--threads", "1"]},
    }
    return Operator(lab, folder, inventory, recipe)


@dataclass(frozen=True, slots=True)
class Remains:
    """What is on a node that a machine at rest does not have."""

    programs: tuple[str, ...] = ()
    ports: tuple[str, ...] = ()
    files: frozenset[str] = field(default=frozenset())


def remains(lab: Lab) -> dict[str, Remains]:
    """What runs, listens and lies on the nodes of a lab, but for sshd and empty directories; {} if nothing."""
    seen = {name: _remains(node) for name, node in lab.nodes.items()}
    return {name: each for name, each in seen.items() if each != Remains()}


def _remains(node: Node) -> Remains:
    found = node.run(["find", "/root", "/tmp", "/var/tmp", "(", "!", "-type", "d", "-o", *_STATE, ")"])
    return Remains(
        programs=tuple(p.argv[0] for p in node.processes() if "sshd" not in p.argv[0]),
        ports=tuple(f"{each.address}:{each.port}" for each in node.listeners() if each.port != SSH_PORT),
        files=frozenset(found.stdout.splitlines()),
    )


_STATE = ("-path", "*/clusterctl/*")
