"""Ways of bringing a cluster up, and that nothing is left of it afterwards."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lab.conftest import MakeLab
from tests.lab.lab import Lab, NodeSpec
from tests.lab.operator import HTTP_PORT, Operator, operator_of, remains
from tests.lab.test_lab_itself import wait_until

SLOW_MBIT = 4


@pytest.fixture(scope="module")
def lab(make_lab: MakeLab) -> Lab:
    return make_lab([NodeSpec("head", models=True), NodeSpec("worker")])


@pytest.fixture
def operator(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    yield operator_of(lab, tmp_path_factory.mktemp("operator"), workers=["worker"])
    assert remains(lab) == {}


def test_a_dry_run_changes_nothing(lab: Lab, operator: Operator) -> None:
    would = operator.succeed("up", "--dry-run", "--json").document
    assert (would["ok"], would["changed"]) == (True, False)
    steps = {(step["title"], step["node"]): step["outcome"] for step in would["steps"]}
    assert steps["put the cluster on record", None] == steps["start the workers", None] == "would change"
    assert steps["start the worker", "worker"] == steps["start the head", "head"] == "would change"
    assert remains(lab) == {}

    operator.succeed("up")
    standing = remains(lab)
    assert operator.succeed("up", "--dry-run").stdout.startswith("dry run: it runs as asked for at http://")
    for arguments in (("down",), ("up",), ("up", "--replace")):
        assert operator.succeed(*arguments, "--dry-run", "--json").document["changed"] is False
        assert remains(lab) == standing
    operator.succeed("down")


def test_down_says_whether_there_was_anything(operator: Operator) -> None:
    operator.succeed("up")
    assert operator.succeed("status", "--json").document["state"] == "up"
    first, second = (operator.succeed("down", "--json").document for _ in range(2))
    assert (first["ok"], first["changed"], first["left"]) == (True, True, [])
    assert (second["ok"], second["changed"], second["left"]) == (True, False, [])
    assert operator.succeed("status", "--json").document["state"] == "down"
    assert operator.run("logs").exit_code == 2


@pytest.mark.parametrize(
    ("place", "limit", "used", "cached"),
    [
        (".", "memory.max", "memory.current", "inactive_file"),
        ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ],
    ids=["cgroup 2", "cgroup 1"],
)
def test_a_worker_in_a_container_is_given_what_the_limits_around_it_leave(
    lab: Lab, operator: Operator, place: str, limit: str, used: str, cached: str
) -> None:
    mount = "mount -t tmpfs cgroup /sys/fs/cgroup && cd /sys/fs/cgroup && mkdir -p"
    limits = f"echo $((300 << 20)) >{limit} && echo $((150 << 20)) >{used}"
    numbers = f'printf "anon 1\\n{cached} %s\\nactive_file 7\\n" $((50 << 20)) >memory.stat'
    lab.nodes["worker"].run(["sh", "-c", f"{mount} {place} && cd {place} && {limits} && {numbers}"])
    try:
        plan = operator.with_node("worker", memory={"reserve_mib": 0}).succeed("plan", "--json").document
    finally:
        lab.nodes["worker"].run(["umount", "/sys/fs/cgroup"])
    assert [device["budget_mib"] for device in plan["devices"]] == [200]


def test_a_head_without_workers_serves_from_its_own_processor(lab: Lab, operator: Operator) -> None:
    alone = operator_of(lab, operator.folder)
    plan = alone.succeed("plan", "--json").document
    assert (plan["devices"], plan["tensor_split"]) == ([], [])
    assert plan["host"]["model_mib"] > 0
    assert "worker" not in alone.succeed("up").stderr
    status = alone.succeed("status", "--json").document
    assert (status["state"], status["workers"]) == ("up", [])
    assert remains(lab).keys() == {"head"}
    assert not any("--rpc" in process.argv for process in lab.nodes["head"].processes())
    alone.succeed("down")


def test_a_worker_with_a_cache_keeps_it_in_the_clusters_own_directory(lab: Lab, operator: Operator) -> None:
    caching = operator.with_node("worker", rpc={"cache": True})
    caching.succeed("up")
    worker = lab.nodes["worker"]
    assert any("-c" in process.argv or "--cache" in process.argv for process in worker.processes())
    caching.succeed("down")
    cached = worker.home / ".cache" / "clusterctl" / "lab"
    assert list(cached.glob("rpc/*"))
    assert {name: each.programs + each.ports for name, each in remains(lab).items()} == {"worker": ()}
    worker.run(["rm", "-r", "/root/.cache"])


def test_without_waiting_the_cluster_is_loading_and_then_up(operator: Operator) -> None:
    worker = operator.lab.nodes["worker"]
    worker.limit_link(SLOW_MBIT, ["private"])
    started = operator.succeed("up", "--no-wait").stdout
    assert started.startswith(f"started: http://127.0.0.1:{HTTP_PORT}; still loading, not verified\n")
    wait_until(lambda: operator.status()["state"] == "loading")
    with operator.running("up", "--json") as waiting:
        waiting.wait_for("look at the nodes")
        worker.restore_link(["private"])
        waited = waiting.finish()
    assert waited.document["changed"] is False
    assert "see that it computes sense" in waited.stderr
    assert operator.status()["state"] == "up"
    assert "see that it computes sense" not in operator.succeed("up").stderr
    operator.succeed("down")


def test_one_node_alone_can_be_taken_down_after_its_head(lab: Lab, operator: Operator) -> None:
    operator.succeed("up")
    kept = operator.run("down", "--node", "worker")
    assert kept.exit_code == 9
    assert "still attached" in kept.stdout
    assert operator.status()["state"] == "up"

    part = operator.succeed("down", "--node", "head").stdout
    assert part == "down: nothing is left on head\nstill running: worker\n"
    assert remains(lab)["head"].programs == ()
    assert operator.run("status").exit_code == 9
    operator.succeed("down", "--node", "worker")
    assert operator.run("down", "--node", "nobody").exit_code == 2


def test_several_nodes_may_be_one_machine(lab: Lab, operator: Operator) -> None:
    workers = [
        {"name": name, "role": "worker", "host": "head", "rpc": {"port": port}}
        for name, port in (("first", 50061), ("second", 50062))
    ]
    crowded = operator.with_inventory({**operator.inventory, "nodes": [*workers, *operator.inventory["nodes"]]})
    crowded.succeed("up")
    status = crowded.status()
    assert [worker["state"] for worker in status["workers"]] == ["serving"] * 3
    running = [process.pid for node in lab.nodes.values() for process in node.processes()]
    assert {status["head"]["pid"], *(worker["pid"] for worker in status["workers"])} <= set(running)
    assert crowded.succeed("up", "--json").document["changed"] is False
    crowded.succeed("down")


def test_two_clusters_share_machines_and_each_has_its_own(lab: Lab, operator: Operator) -> None:
    other = operator.with_inventory({**operator.inventory, "cluster": "other"}).with_node(
        "worker", rpc={"port": 50099}
    )
    other = other.with_recipe(server={**operator.recipe["server"], "port": HTTP_PORT + 1})
    operator.succeed("up")
    other.succeed("up")
    operator.succeed("down")
    assert other.status()["state"] == "up"
    assert operator.status()["state"] == "down"
    other.succeed("down")


def test_down_waits_for_a_start_that_has_not_told_its_process_yet(lab: Lab, operator: Operator) -> None:
    worker = lab.nodes["worker"]
    operator.succeed("up")
    process = worker.home / ".local/state/clusterctl/lab/nodes/worker/process"
    process.rename(process.with_suffix(".later"))
    with operator.running("down") as down:
        down.wait_for("stop the head")
        wait_until(lambda: ("sleep", "0.05") in [each.argv for each in worker.processes()])
        process.with_suffix(".later").rename(process)
        assert down.finish().exit_code == 0
