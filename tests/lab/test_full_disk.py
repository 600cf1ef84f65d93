"""Disks that are full: of the head, which keeps the lock and the record, and of a worker, which caches weights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.lab.conftest import MakeLab
from tests.lab.faults import WORKER, kill
from tests.lab.lab import Lab, NodeSpec
from tests.lab.node import Node
from tests.lab.operator import Operator, operator_of, remains
from tests.lab.test_serving import ask, assert_same_answer

SLOW_MBIT = 20


@pytest.fixture(scope="module")
def lab(make_lab: MakeLab) -> Lab:
    return make_lab([NodeSpec("head", models=True), NodeSpec("worker")])


@pytest.fixture
def operator(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    yield operator_of(lab, tmp_path_factory.mktemp("operator"), workers=["worker"])
    assert remains(lab) == {}


@contextmanager
def disk_at(node: Node, folder: str, size_mib: int) -> Iterator[None]:
    """A disk of its own for a folder of a node."""
    node.run(["mkdir", "-p", folder])
    node.run(["mount", "-t", "tmpfs", "-o", f"size={size_mib}m", "disk", folder])
    try:
        yield
    finally:
        node.run(["umount", folder])


def fill(node: Node, folder: str, *, but_mib: int = 0) -> None:
    """Leave so much room in a folder, and no more."""
    free_mib = int(node.run(["df", "--output=avail", "--block-size=M", folder]).stdout.split()[-1].rstrip("M"))
    node.run(["dd", "if=/dev/zero", f"of={folder}/filling", "bs=1M", f"count={free_mib - but_mib}"], check=False)


def test_a_full_disk_of_the_head_stops_up_and_not_down(lab: Lab, operator: Operator) -> None:
    head = lab.nodes["head"]
    with disk_at(head, "/root/.local", size_mib=4):
        operator.succeed("up")
        fill(head, "/root/.local")
        refused = operator.run("up", "--replace")
        assert refused.exit_code == 6
        assert "could not take the cluster's lock" in refused.stderr
        assert "look at free disk space" in refused.stderr
        assert operator.status()["state"] == "up"
        done = operator.succeed("down")
        assert "lock the cluster  head  warning" in done.stderr
        head.run(["rm", "/root/.local/filling"])
        assert remains(lab) == {}


def test_weights_that_a_full_disk_cut_short_are_not_served(lab: Lab, operator: Operator) -> None:
    operator.succeed("up")
    before = ask(lab)
    operator.succeed("down")
    worker = lab.nodes["worker"]
    caching = operator.with_node("worker", rpc={"cache": True})
    with disk_at(worker, "/root/.cache", size_mib=200):
        worker.limit_link(SLOW_MBIT, ["private"])
        with caching.running("up") as bringing_up:
            bringing_up.wait_for("start the head")
            fill(worker, "/root/.cache", but_mib=10)
            worker.restore_link(["private"])
            done = bringing_up.finish()
        assert "drop the worker's cache  worker  warning" in done.stderr
        assert worker.run(["find", "/root/.cache/clusterctl", "-type", "f"], check=False).stdout == ""
        worker.run(["rm", "/root/.cache/filling"])
        kill(worker, WORKER)
        caching.succeed("recover")
        assert_same_answer(ask(lab), before)
        caching.succeed("down", "--purge-cache")
