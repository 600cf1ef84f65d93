"""What a running cluster is made of, read back from its records; and the arms of a fair comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from clusterctl.bench.arms import alone, more_slots_of, room_of, without_workers
from clusterctl.bench.hardware import hardware_of
from clusterctl.bench.measure import Serving, demand_room
from clusterctl.bench.plan import running_plan
from clusterctl.cluster.record import Process, ProcessState, Record
from clusterctl.cluster.running_head import argument_of, running_head
from clusterctl.errors import NotReady, UsageError
from clusterctl.measurements import Placement, Settings
from clusterctl.model import Role
from tests.unit import cluster_samples

HEAD = ("--rpc", "10.10.0.21:50052,10.10.0.22:50052", "--device", "RPC0,RPC1,RPC2,CUDA0")


def process(node: str, role: Role, argv: Sequence[str], *, address: str = "127.0.0.1") -> Process:
    record = Record(
        cluster="demo",
        node=node,
        role=role,
        argv=("/opt/llama/program", *argv),
        address=address,
        port=50052,
        build="b11434",
        owner="ops",
        started_at="2026-11-30T02:25:11+00:00",
        inputs="0123",
    )
    return Process(record, ProcessState.RUNNING, 77, None)


W1 = process("w1", Role.WORKER, ["--device", "CUDA0,CUDA1"], address="10.10.0.21")
W2 = process("w2", Role.WORKER, ["--device", "ROCm0"], address="10.10.0.22")


def plan_of(head: Sequence[str], *workers: Process) -> tuple[Placement, ...]:
    record = process("head", Role.HEAD, head).record
    return running_plan(record, {each.record.node: each for each in workers})


def test_layers_are_found_on_workers_with_several_devices_and_on_the_head() -> None:
    assert plan_of((*HEAD, "--tensor-split", "5,6,7,13"), W1, W2) == (
        Placement("w1", "CUDA0", 5),
        Placement("w1", "CUDA1", 6),
        Placement("w2", "ROCm0", 7),
        Placement("head", "CUDA0", 13),
    )


def test_a_head_on_its_own_devices_needs_no_worker() -> None:
    assert plan_of(("--device", "CUDA0,Vulkan1", "--tensor-split", "20,11")) == (
        Placement("head", "CUDA0", 20),
        Placement("head", "Vulkan1", 11),
    )


@pytest.mark.parametrize(
    "head",
    [
        (),
        ("--device", "none"),
        ("--device",),
        HEAD,
        (*HEAD, "--tensor-split", "5,6,7"),
        (*HEAD, "--tensor-split", "5,6,7,x"),
    ],
)
def test_records_that_do_not_tell_give_no_plan(head: Sequence[str]) -> None:
    assert plan_of(head, W1, W2) == ()


def test_a_worker_that_is_gone_leaves_the_plan_unknown() -> None:
    gone = replace(W2, state=ProcessState.ENDED)
    assert plan_of((*HEAD, "--tensor-split", "5,6,7,13"), W1, gone) == ()


def test_only_a_head_that_runs_is_found() -> None:
    seen = cluster_samples.facts("head").observation
    with pytest.raises(NotReady, match="the head does not run"):
        running_head(seen)
    head = process("head", Role.HEAD, [])
    assert running_head(replace(seen, processes={"head": head})) == head.record
    with pytest.raises(NotReady, match="the head has stopped"):
        running_head(replace(seen, processes={"head": replace(head, state=ProcessState.ENDED)}))


@pytest.mark.parametrize(("argv", "value"), [(("--a", "1", "--b", "2"), "2"), (("--b",), None), ((), None)])
def test_an_argument_is_what_follows_its_flag(argv: tuple[str, ...], value: str | None) -> None:
    assert argument_of(argv, "--b") == value


def test_machines_have_one_fingerprint_until_a_device_changes() -> None:
    facts = cluster_samples.all_facts()
    busy = cluster_samples.listing(cluster_samples.CUDA.replace("23210 MiB free", "100 MiB free"))
    other = cluster_samples.listing("CUDA0: NVIDIA GeForce RTX 4090 (24154 MiB, 23210 MiB free)")
    same = cluster_samples.all_facts(w1=cluster_samples.facts("w1", devices=busy))
    changed = cluster_samples.all_facts(w1=cluster_samples.facts("w1", devices=other))
    assert hardware_of(facts) == hardware_of(same)
    assert hardware_of(facts).fingerprint != hardware_of(changed).fingerprint


def test_a_node_alone_is_the_head_of_its_own_devices() -> None:
    inventory = cluster_samples.inventory()
    lone = alone(inventory, inventory.node("w1"))
    assert [node.name for node in lone.nodes] == ["w1"]
    assert lone.head.role is Role.HEAD
    assert not lone.head.serve_only
    assert lone.workers == ()
    assert lone.cluster == inventory.cluster


def test_a_recipe_for_one_node_names_no_other_and_serves_nobody_else() -> None:
    text = cluster_samples.RECIPE + (
        "split: {strategy: manual, layers: {w1: 10, w2: 6}}\n"
        "server: {host: 10.10.0.1, port: 8080, api_key_file: ~/key}\n"
    )
    lone = without_workers(cluster_samples.recipe(text), 4)
    assert (lone.split.strategy, lone.split.layers) == ("memory", None)
    assert (lone.server.host, lone.server.api_key_file, lone.server.port) == ("127.0.0.1", None, 8080)
    assert (lone.parallel, lone.context) == (4, 4096)


def test_more_slots_are_enough_for_every_client_and_twice_the_recipes() -> None:
    two = cluster_samples.recipe(cluster_samples.RECIPE + "parallel: 2\n")
    assert more_slots_of(two, ()) == 4
    assert more_slots_of(two, (1, 3)) == 4
    assert more_slots_of(two, (1, 8)) == 8


def test_more_slots_share_the_context_unless_they_share_one_cache() -> None:
    assert room_of(cluster_samples.recipe(), 4) == 1024
    unified = cluster_samples.recipe(cluster_samples.RECIPE + "kv_cache: {unified: true}\n")
    assert room_of(unified, 4) == 4096


def test_a_request_must_fit_into_a_slot() -> None:
    demand_room(Serving(2, 640), Settings(512, 128, 5, 1))
    with pytest.raises(UsageError, match="exceed the 639 tokens"):
        demand_room(Serving(2, 639), Settings(512, 128, 5, 1))
