"""What a newcomer does first: `make demo`, and a cluster on the very machine that clusterctl runs on."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tests.lab.inspection import NodeProcess, listeners_beside, processes_beside
from tests.lab.operator import CLUSTERCTL, TIMEOUT_S, Finished
from tests.lab.system import SEARCH_PATH, tool
from tools.fetch import cache_folder, fetch_all

ROOT = Path(__file__).parents[2]
NEEDED = ("Makefile", "pyproject.toml", "tools", "inventory", "recipes")
# Where clusterctl keeps what the programs said of their options.
OPTIONS_CACHE = ".cache/clusterctl/options"
LOCAL_DEMO = ("-i", f"{ROOT}/inventory/local-demo.yaml", "-r", f"{ROOT}/recipes/smollm2-demo.yaml")
# Waiting for `cat`, the shell also takes off the list what ends there without a parent.
INIT = "ip link set lo up && cat"


@dataclass(frozen=True, slots=True)
class Sandbox:
    """This machine once more: no network, and processes, ports and a home directory of its own."""

    first: Sequence[NodeProcess]
    home: Path

    @property
    def _init_pid(self) -> int:
        return self.first[0].machine_pid

    def run(self, *argv: str, folder: Path, **variables: str) -> Finished:
        """Run a command to its end."""
        own = {"PATH": SEARCH_PATH, "HOME": str(self.home), "CLUSTERCTL_CACHE": str(cache_folder())}
        enter = [tool("nsenter"), f"--target={self._init_pid}", "--net", "--pid", "--mount"]
        done = subprocess.run(
            [*enter, f"--wd=/proc/{self._init_pid}/root{folder}", "--", *argv],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=own | variables,
            timeout=TIMEOUT_S,
            check=False,
        )
        return Finished(done.returncode, done.stdout, done.stderr)

    def processes(self) -> list[NodeProcess]:
        """What runs there that did not at first."""
        return [process for process in processes_beside(self._init_pid) if process not in self.first]

    def remains(self) -> list[object]:
        """What runs, listens and lies there that did not at first, but for empty directories and the cache."""
        cache = self.home / OPTIONS_CACHE
        files = [path for path in self.home.rglob("*") if not path.is_dir() and cache not in path.parents]
        return [*self.processes(), *listeners_beside(self._init_pid), *files]


@pytest.fixture
def sandbox(require_lab: None, tmp_path: Path) -> Iterator[Sandbox]:
    home = tmp_path / "home"
    home.mkdir()
    isolate = [tool("unshare"), "--net", "--pid", "--mount-proc", "--fork", "--kill-child"]
    with subprocess.Popen(
        [tool("setpriv"), "--pdeathsig", "KILL", *isolate, "sh", "-c", INIT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"PATH": SEARCH_PATH},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"echo\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"echo\n"
        (init,) = psutil.Process(process.pid).children()
        yield Sandbox(processes_beside(init.pid), home)


@pytest.fixture(scope="module")
def llama(require_lab: None) -> dict[str, str]:
    """The variables by which the demo's files take programs and a model."""
    programs, model = fetch_all(["b10434", "model"]).values()
    return {"CLUSTERCTL_LLAMA": str(programs), "CLUSTERCTL_MODEL": str(model)}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout in which `make` has installed clusterctl already: the one that is tested."""
    folder = tmp_path / "checkout"
    programs = folder / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name in NEEDED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    for name, program in {"python": sys.executable, "clusterctl": CLUSTERCTL}.items():
        (programs / name).write_text(f'#!/bin/sh\nexec "{program}" "$@"\n')
        (programs / name).chmod(0o755)
    (folder / ".venv" / "product").touch()
    return folder


def test_the_demo_answers_a_question_and_leaves_nothing(
    sandbox: Sandbox, checkout: Path, llama: dict[str, str]
) -> None:
    demo = sandbox.run("make", "demo", folder=checkout)
    assert demo.exit_code == 0, demo.stdout + demo.stderr
    _, _, asked = demo.stdout.partition("\n$ curl ")
    answer, _, rest = asked.partition("\n")[2].partition("\n\nFrom nothing to the answer: ")
    assert re.search(r"\w{3}", answer), demo.stdout
    assert "\ndown: nothing is left\n" in rest, demo.stdout
    assert sandbox.remains() == []


def test_a_cluster_on_ones_own_machine_is_found_again_and_goes_down(
    sandbox: Sandbox, tmp_path: Path, llama: dict[str, str]
) -> None:
    def clusterctl(command: str) -> dict[str, object]:
        done = sandbox.run(CLUSTERCTL, *LOCAL_DEMO, command, "--json", folder=tmp_path, **llama)
        assert done.exit_code == 0, done.stdout + done.stderr
        return done.document

    def programs() -> list[NodeProcess]:
        return [each for each in sandbox.processes() if each.argv[0].startswith(llama["CLUSTERCTL_LLAMA"])]

    assert clusterctl("up")["changed"] is True
    running = programs()
    assert len(running) == 3
    assert clusterctl("status")["state"] == "up"
    assert clusterctl("up")["changed"] is False
    assert programs() == running
    ended = clusterctl("down")
    assert (ended["changed"], ended["left"]) == (True, [])
    assert sandbox.remains() == []
