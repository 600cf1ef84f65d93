"""What is installed is what is here: wheel and sdist carry everything, and the wheel runs by itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from clusterctl import __version__
from tests.unit.cli_program import environment

ROOT = Path(__file__).parents[2]
# One build and one environment for all of these, also when tests are spread over processes.
pytestmark = pytest.mark.xdist_group("packaging")

INVENTORY = """\
version: 1
cluster: demo-of-tests
nodes:
  - {name: here, role: head, connection: local, llama: {bin_dir: /no/such/place}}
"""
MIXED_POOL = ("-i", f"{ROOT}/inventory/mixed-pool.yaml", "-r", f"{ROOT}/recipes/mixed-pool-llama-3.3-70b.yaml")
FACTS = f"{ROOT}/recipes/facts/mixed-pool-llama-3.3-70b.json"


@dataclass(frozen=True, slots=True)
class Installed:
    """An environment of its own with the wheel and what that asks for; everything runs in an empty directory."""

    programs: Path
    home: Path

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run one of its programs."""
        program, *arguments = words
        variables = environment(self.home)
        variables.pop("PYTHONPATH", None)
        argv = [str(self.programs / program), *arguments]
        return subprocess.run(
            argv, cwd=self.home, env=variables, capture_output=True, text=True, timeout=120, check=False
        )


def own_files(folder: str) -> set[str]:
    """Every file of a directory of the checkout, by its path from the top."""
    files = (file for file in (ROOT / folder).rglob("*") if file.is_file() and "__pycache__" not in file.parts)
    return {file.relative_to(ROOT).as_posix() for file in files}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the sdist of the checkout and the wheel that is built from that sdist."""
    folder = tmp_path_factory.mktemp("dist")
    build = (sys.executable, "-m", "hatchling", "build", "-d", str(folder))
    subprocess.run([*build, "-t", "sdist"], cwd=ROOT, capture_output=True, timeout=120, check=True)
    with tarfile.open(sdist_in(folder)) as archive:
        archive.extractall(folder, filter="data")
    unpacked = folder / f"clusterctl-{__version__}"
    subprocess.run([*build, "-t", "wheel"], cwd=unpacked, capture_output=True, timeout=120, check=True)
    return folder


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel in an environment of its own, with its dependencies from the package index."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder / "venv", with_pip=True)
    done = subprocess.run(
        [folder / "venv/bin/python", "-m", "pip", "install", "--quiet", wheel_in(built)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    if done.returncode != 0 and "CI" not in os.environ:
        pytest.skip(f"pip can't install: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    (folder / "home").mkdir()
    return Installed(folder / "venv/bin", folder / "home")


def sdist_in(folder: Path) -> Path:
    return folder / f"clusterctl-{__version__}.tar.gz"


def wheel_in(folder: Path) -> Path:
    return folder / f"clusterctl-{__version__}-py3-none-any.whl"


def test_the_wheel_carries_every_file_of_the_package(built: Path) -> None:
    with zipfile.ZipFile(wheel_in(built)) as archive:
        members = set(archive.namelist())
    metadata = f"clusterctl-{__version__}.dist-info/"
    own = {name for name in members if not name.startswith(metadata)}
    assert own == own_files("clusterctl")
    assert {"clusterctl/remote/scripts/prelude.sh", "clusterctl/llama/flags.yaml", "clusterctl/py.typed"} <= own
    assert f"{metadata}licenses/LICENSE" in members


def test_the_sdist_carries_what_its_own_tests_need(built: Path) -> None:
    with tarfile.open(sdist_in(built)) as archive:
        members = {name.partition("/")[2] for name in archive.getnames()}
    for folder in ("clusterctl", "tests", "tools", "inventory", "recipes", "docs", "benchmarks"):
        assert own_files(folder) <= members
    assert {"README.md", "mkdocs.yml", "Makefile", "pyproject.toml", ".ci/run", "LICENSE"} <= members


def test_the_package_comes_from_where_it_was_installed(installed: Installed) -> None:
    done = installed.run(
        "python", "-c", "import clusterctl; print(clusterctl.bring_up.__module__, clusterctl.__file__)"
    )
    module, _, file = done.stdout.strip().partition(" ")
    assert module == "clusterctl.cluster.up"
    assert Path(file).is_relative_to(installed.programs.parent)


def test_the_program_answers_at_once(installed: Installed) -> None:
    assert installed.run("clusterctl", "version").stdout == f"clusterctl {__version__}\n"
    assert "Commands:" in installed.run("clusterctl", "--help").stdout


@pytest.mark.parametrize("kind", ["inventory", "plan"])
def test_the_program_prints_its_schemas(kind: str, installed: Installed) -> None:
    assert "$schema" in json.loads(installed.run("clusterctl", "schema", kind).stdout)


def test_the_program_plans_with_its_own_tables(installed: Installed) -> None:
    done = installed.run("clusterctl", *MIXED_POOL, "plan", "--facts", FACTS, "--json")
    assert json.loads(done.stdout)["fits"] is True


def test_the_program_looks_at_a_machine_with_its_own_scripts(installed: Installed) -> None:
    (installed.home / "here.yaml").write_text(INVENTORY)
    done = installed.run("clusterctl", "-i", "here.yaml", "check", "--json")
    assert [node["reachable"] for node in json.loads(done.stdout)["nodes"]] == [True]
    assert done.returncode == 4


def test_the_shell_is_answered_from_the_table(installed: Installed) -> None:
    asking = "_CLUSTERCTL_COMPLETE=bash_complete COMP_WORDS='clusterctl install --from w' COMP_CWORD=3"
    done = subprocess.run(
        ["sh", "-c", f"{asking} {installed.programs}/clusterctl"], capture_output=True, text=True, check=True
    )
    assert done.stdout == "plain,wheel\n"
