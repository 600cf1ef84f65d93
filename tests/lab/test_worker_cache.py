"""The cache of a worker on a real disk: shown, reused, refused where it has no room, removed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.conftest import MakeLab
from tests.lab.lab import Lab, NodeSpec
from tests.lab.operator import Operator, operator_of, remains


@pytest.fixture(scope="module")
def lab(make_lab: MakeLab) -> Lab:
    return make_lab([NodeSpec("head", models=True), NodeSpec("worker")])


@pytest.fixture
def operator(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    operator = operator_of(lab, tmp_path_factory.mktemp("operator"), workers=["worker"])
    yield operator.with_node("worker", rpc={"cache": True})
    assert remains(lab) == {}


def worker_of(operator: Operator) -> dict[str, object]:
    report = operator.succeed("check", "--json").document["nodes"][0]
    assert isinstance(report, dict)
    return report


def test_a_cache_is_shown_with_its_size_kept_by_down_and_removed_on_request(lab: Lab, operator: Operator) -> None:
    assert worker_of(operator)["cache_mib"] == 0
    operator.succeed("up")
    operator.succeed("down")
    cache = lab.nodes["worker"].home / ".cache/clusterctl/lab"
    size_mib = sum(file.stat().st_size for file in cache.rglob("*")) / 2**20
    shown = worker_of(operator)
    assert shown["cache_mib"] == pytest.approx(size_mib, abs=2)
    assert "down --purge-cache" in operator.succeed("check").stdout

    would = operator.succeed("down", "--purge-cache", "--dry-run", "--json").document
    assert (would["changed"], cache.exists()) == (False, True)
    purged = operator.succeed("down", "--purge-cache", "--json").document
    assert (purged["ok"], purged["changed"]) == (True, True)
    assert not cache.exists()
    assert operator.succeed("down", "--purge-cache", "--json").document["changed"] is False


def test_a_running_cluster_is_ended_before_its_cache_is_removed(lab: Lab, operator: Operator) -> None:
    operator.succeed("up")
    operator.succeed("down", "--purge-cache")


def test_a_cache_on_another_disk_is_emptied_and_its_link_stays(lab: Lab, operator: Operator) -> None:
    worker = lab.nodes["worker"]
    elsewhere, link = worker.home / "disk", worker.home / ".cache/clusterctl/lab"
    elsewhere.mkdir()
    link.parent.mkdir(parents=True)
    link.symlink_to("/root/disk")
    operator.succeed("up")
    operator.succeed("down")
    assert list(elsewhere.glob("rpc/*"))
    operator.succeed("down", "--purge-cache")
    assert link.is_symlink()
    assert list(elsewhere.iterdir()) == []
    link.unlink()
    link.parent.rmdir()
    elsewhere.rmdir()


def test_weights_for_which_the_disk_has_no_room_are_refused(lab: Lab, operator: Operator) -> None:
    worker = lab.nodes["worker"]
    Path(worker.home, ".cache").mkdir(exist_ok=True)
    worker.run(["mount", "-t", "tmpfs", "-o", "size=20m", "cache", "/root/.cache"])
    for command in ("plan", "up"):
        refused = operator.run(command)
        assert refused.exit_code == 5
        assert "worker: the worker's cache is to hold 0.1 GiB, but its disk has room for 0.0 GiB" in refused.stderr
    operator.with_node("worker", rpc={"cache": False}).succeed("plan")
    worker.run(["umount", "/root/.cache"])
