"""What may be asked of `install`, and what is refused before any node is looked at."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import pytest

from clusterctl.cluster.installed import ROOT
from clusterctl.config.inventory import Inventory
from clusterctl.errors import UsageError
from clusterctl.install.order import RELEASES, Order, Source, make_order
from clusterctl.install.site import sites_of
from clusterctl.model import Build
from clusterctl.remote.local import LocalTransport


def inventory(llama: Mapping[str, str] | None = None, hosts: tuple[str, ...] = ("a", "b")) -> Inventory:
    return Inventory.model_validate(
        {
            "version": 1,
            "cluster": "demo",
            "network": "10.0.0.0/24",
            "nodes": [
                {"name": "head", "role": "head", "llama": llama or {}},
                *({"name": f"worker{n}", "host": host, "role": "worker"} for n, host in enumerate(hosts)),
            ],
        }
    )


def order(
    name: str = "b11434",
    source: Source = Source.WHEEL,
    files: tuple[str, ...] = (),
    sha256: tuple[str, ...] = (),
    nodes: Inventory | None = None,
) -> Order:
    return make_order(nodes or inventory(), name, source, files, sha256, RELEASES)


def test_one_file_is_for_all_nodes_but_those_that_have_their_own(tmp_path: Path) -> None:
    general, own = tmp_path / "general=.whl", tmp_path / "own.whl"
    general.write_bytes(b"general")
    own.write_bytes(b"own")
    made = order(files=(str(general), f"worker1={own}"))
    assert {node: file.path for node, file in made.files.items()} == {
        "head": general,
        "worker0": general,
        "worker1": own,
    }
    assert made.files["head"].sha256 == hashlib.sha256(b"general").hexdigest()


@pytest.mark.parametrize("files", [(), ("x", "y"), ("head=x",)])
def test_a_node_without_a_file_or_with_two_is_refused(files: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="needs one FILE, or NODE=FILE for each node"):
        order(files=files)


def test_a_file_for_a_node_that_is_not_there_names_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no node is called strix9") as caught:
        order(files=(f"strix9={tmp_path}/a.whl",))
    assert caught.value.hint == "known are head, worker0, worker1"


def test_a_file_may_have_an_equals_sign_in_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("v=1.whl").write_bytes(b"x")
    made = order(files=("v=1.whl",))
    assert made.files["head"].path == Path("v=1.whl")


def test_a_file_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match="can't read /no/such"):
        order(files=("/no/such.whl",))


def test_a_file_with_another_hash_than_those_given_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.whl"
    file.write_bytes(b"a")
    sha256 = hashlib.sha256(b"a").hexdigest()
    assert order(files=(str(file),), sha256=("0" * 64, sha256.upper()))
    with pytest.raises(UsageError, match=f"is {sha256}, which is none of those given"):
        order(files=(str(file),), sha256=("0" * 64,))


@pytest.mark.parametrize(
    ("name", "build", "called"),
    [("b11434", Build(11434), "b11434"), ("11434", Build(11434), "b11434"), ("B11434 ", Build(11434), "b11434")],
)
def test_a_release_is_called_by_its_tag(name: str, build: Build, called: str) -> None:
    made = order(name, Source.RELEASE)
    assert (made.name, made.build) == (called, build)


@pytest.mark.parametrize("name", ["latest", "../../etc", "b1", "", "b10434/../x"])
def test_what_is_no_build_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="is not a build"):
        order(name, Source.RELEASE)


def test_a_release_takes_no_files_and_no_commit() -> None:
    with pytest.raises(UsageError, match="takes no files"):
        order(source=Source.RELEASE, files=("x",))
    with pytest.raises(UsageError, match="named by its tag"):
        order("7e4c0a9", Source.RELEASE)


def test_another_build_than_the_inventory_pins_is_refused() -> None:
    with pytest.raises(UsageError, match="head: the inventory pins"):
        order(source=Source.RELEASE, nodes=inventory({"build": "b10434"}))
    assert order(source=Source.RELEASE, nodes=inventory({"build": "b11434"}))


def test_an_installation_that_nobody_would_use_is_refused() -> None:
    with pytest.raises(UsageError, match="would not be used") as caught:
        order(source=Source.RELEASE, nodes=inventory({"bin_dir": "/opt/llama.cpp/bin"}))
    assert f"{ROOT}/current" in str(caught.value.hint)
    for bin_dir in (f"{ROOT}/current", f"{ROOT}/current/", f"/home/ops/{ROOT[2:]}/current"):
        assert order(source=Source.RELEASE, nodes=inventory({"bin_dir": bin_dir}))


def test_nodes_on_one_machine_are_one_place_to_install() -> None:
    nodes = inventory(hosts=("gpu", "GPU"))
    sites = sites_of(nodes, {node.name: LocalTransport(node.name) for node in nodes.nodes})
    assert {name: [node.name for node in site.nodes] for name, site in sites.items()} == {
        "head": ["head"],
        "worker0": ["worker0", "worker1"],
    }
