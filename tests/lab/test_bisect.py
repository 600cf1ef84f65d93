"""`recover --bisect`: which of three workers returns wrong numbers, though nothing on any of them fails."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.conftest import MakeLab
from tests.lab.lab import Lab, NodeSpec
from tests.lab.operator import Operator, operator_of, remains
from tests.lab.ordeal import programs
from tests.lab.system import run, tool
from tests.lab.test_canary import spoil_cache
from tests.lab.test_serving import ask

SOURCE = Path(__file__).with_name("broken_backend.c")
LIBRARY = "broken_backend.so"
WORKERS = ("left", "middle", "right")


@pytest.fixture(scope="module")
def lab(make_lab: MakeLab) -> Lab:
    lab = make_lab([NodeSpec("head", models=True), *map(NodeSpec, WORKERS)])
    for name in WORKERS:
        library = str(lab.nodes[name].directory / LIBRARY)
        run([tool("cc"), "-shared", "-fPIC", "-o", library, str(SOURCE), "-ldl"])
    return lab


@pytest.fixture
def operator(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    operator = operator_of(lab, tmp_path_factory.mktemp("operator"), workers=WORKERS)
    yield operator
    operator.succeed("down", "--purge-cache")
    assert remains(lab) == {}


def with_broken(operator: Operator, name: str, every: int = 1) -> Operator:
    """The same operator, with a worker whose backend returns wrong numbers and no error."""
    return operator.with_node(name, env={"LD_PRELOAD": f"/run/node/{LIBRARY}", "SPOIL_EVERY": str(every)})


def demand_found(operator: Operator, culprit: str) -> None:
    """The worker is named, and the cluster serves without it."""
    found = operator.run("recover", "--bisect", "--json")
    assert found.exit_code == 9, found.stderr
    assert [left["node"] for left in found.document["left"]] == [culprit]
    running = {name for name, pids in programs(operator).items() if pids}
    assert running == {"head", *WORKERS} - {culprit}
    assert operator.status()["state"] == "up"
    assert ask(operator.lab)["content"]


def test_a_worker_with_a_broken_backend_keeps_the_cluster_down_and_is_named(lab: Lab, operator: Operator) -> None:
    broken = with_broken(operator, "middle")
    refused = broken.run("up")
    assert refused.exit_code == 6
    assert "what it computes is wrong" in refused.stderr
    assert "recover --bisect" in refused.stderr
    assert remains(lab) == {}
    demand_found(broken, "middle")


def test_what_leaves_room_for_doubt_is_not_taken_for_sense(lab: Lab, operator: Operator) -> None:
    broken = with_broken(operator, "middle", every=6)
    doubtful = broken.succeed("up")
    assert "can't tell: mean log-probability" in doubtful.stderr
    demand_found(broken, "middle")


def test_a_damaged_cache_is_told_by_its_worker(lab: Lab, operator: Operator) -> None:
    caching = operator
    for name in WORKERS:
        caching = caching.with_node(name, rpc={"cache": True})
    caching.succeed("up")
    caching.succeed("down")
    spoil_cache(lab.nodes["right"], every=97, mask=0x10)
    assert caching.run("up").exit_code == 6
    demand_found(caching, "right")


def test_two_broken_workers_are_not_told_apart_and_nothing_is_left_running(lab: Lab, operator: Operator) -> None:
    broken = with_broken(with_broken(operator, "left"), "right")
    refused = broken.run("recover", "--bisect")
    assert refused.exit_code == 9
    assert "no single worker is to blame" in refused.stderr
    assert remains(lab) == {}


def test_sound_workers_are_all_kept(operator: Operator) -> None:
    found = operator.succeed("recover", "--bisect")
    assert "with all workers  it computes sense" in found.stderr
    assert all(programs(operator).values())


def test_a_split_by_hand_leaves_nobody_out_and_nothing_is_touched(operator: Operator) -> None:
    operator.succeed("up")
    before = programs(operator)
    layers = dict.fromkeys(WORKERS, 10)
    refused = operator.with_recipe(split={"strategy": "manual", "layers": layers}).run("recover", "--bisect")
    assert refused.exit_code == 2
    assert "by hand" in refused.stderr
    assert programs(operator) == before
