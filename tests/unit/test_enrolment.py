"""The record of a cluster when it can't be written: what `down` then says is left."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from clusterctl.cluster.enrolment import announce_end, forget
from clusterctl.cluster.session import Session
from clusterctl.config.inventory import Inventory
from clusterctl.config.loading import parse_inventory
from clusterctl.remote.local import LocalTransport
from tests.unit.sights import MEMBERSHIP, WELL, with_node

INVENTORY = """
version: 1
cluster: lab
network: 10.0.0.0/24
nodes: [{name: left, role: worker}, {name: right, role: worker}, {name: head, role: head}]
"""


@pytest.fixture
def inventory() -> Inventory:
    return parse_inventory(INVENTORY, "test.yaml", {})


@pytest.fixture
def opened() -> Session:
    return Session({name: LocalTransport(name) for name in WELL.seen}, {}, dry=False)


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the head keeps its records."""
    monkeypatch.setenv("HOME", str(tmp_path))
    directory = tmp_path / ".local/state/clusterctl/lab"
    directory.mkdir(parents=True)
    (directory / "cluster.json").write_text(MEMBERSHIP.to_json())
    return directory


async def test_a_cluster_that_is_gone_leaves_no_record(inventory: Inventory, opened: Session, state: Path) -> None:
    assert await forget(inventory, opened, WELL.seen, {}) == {}
    assert "lab" not in os.listdir(state.parent)


async def test_a_record_that_can_not_be_removed_is_left_on_the_head(
    inventory: Inventory, opened: Session, state: Path
) -> None:
    (state / "cluster.json").unlink()
    (state / "cluster.json").mkdir()
    left = await forget(inventory, opened, WELL.seen, {})
    assert left.keys() == {"head"}
    assert "record can't be changed" in left["head"]
    assert "directory" in left["head"].lower()


async def test_a_record_that_can_not_be_written_is_left_beside_what_is_left_there(
    inventory: Inventory, opened: Session, state: Path
) -> None:
    (state / "cluster.json.new").mkdir()
    await announce_end(inventory, opened, WELL.seen)
    left = await forget(inventory, opened, WELL.seen, {"head": "it does not end", "left": "it is lost"})
    assert left["left"] == "it is lost"
    assert left["head"].startswith("it does not end; the cluster's record can't be changed")
    assert (state / "cluster.json").read_text() == MEMBERSHIP.to_json()


async def test_a_damaged_record_that_can_not_be_removed_is_left_where_it_is(
    inventory: Inventory, opened: Session, state: Path
) -> None:
    seen = with_node(WELL, "head", membership="{").seen
    assert await forget(inventory, opened, seen, {}) == {}
    (state / "cluster.json").mkdir(parents=True)
    assert (await forget(inventory, opened, seen, {})).keys() == {"head"}
