"""What of a cluster runs already, and whether it is the one that is asked for."""

from __future__ import annotations

import pytest

from clusterctl.cluster.facts import NodeFacts
from clusterctl.cluster.membership import Member, Membership
from clusterctl.cluster.record import Record
from clusterctl.cluster.standing import Standing, inputs_digest, processes_of, standing_of
from clusterctl.model import Role
from clusterctl.remote.target import Destination
from tests.unit.cluster_samples import CUDA, NODES, RECIPE, all_facts, facts, inventory, listing, recipe

DIGEST = "0123456789abcdef"
ROLES = {"w1": Role.WORKER, "w2": Role.WORKER, "head": Role.HEAD}
WHOLE = {"w1": "running", "w2": "running", "head": "running"}


def record_text(name: str, state: str, digest: str = DIGEST) -> str:
    record = Record("demo", name, ROLES[name], ("/opt/x",), "10.10.0.1", 50052, "b1", "me", "", digest)
    return f"{state}\n77\n\nsame\n{record.to_json()}"


def membership_text(*names: str) -> str:
    members = tuple(Member(name, ROLES[name], None, "10.10.0.1", 50052) for name in names)
    return Membership(members, "http://127.0.0.1:8080", "demo").to_json()


def standing(
    states: dict[str, str],
    *,
    membership: str | None = membership_text(*ROLES),
    digests: dict[str, str] | None = None,
) -> Standing:
    """The standing of a cluster whose records are in these states; `digests` differ from the one asked for."""
    known: dict[str, NodeFacts] = {}
    for name in ROLES:
        changes = {}
        if name in states:
            changes[f"record:{name}"] = record_text(name, states[name], (digests or {}).get(name, DIGEST))
        if name == "head" and membership is not None:
            changes["cluster"] = membership
        known[name] = facts(name, changes=changes)
    return standing_of(inventory(), known, DIGEST)


def test_without_any_record_nothing_runs() -> None:
    assert standing({}, membership=None) is Standing.NOTHING


@pytest.mark.parametrize(
    "states", [{"w1": "running"}, {"w1": "ended"}, {**WHOLE, "head": "ended"}, {"head": "ended"}]
)
def test_records_without_a_running_head_are_remains(states: dict[str, str]) -> None:
    assert standing(states) is Standing.REMAINS


def test_the_whole_cluster_from_the_same_inputs_is_the_same() -> None:
    assert standing(WHOLE) is Standing.SAME


def test_a_cluster_may_use_fewer_nodes_than_the_inventory_has() -> None:
    assert (
        standing({"w1": "running", "head": "running"}, membership=membership_text("w1", "head")) is Standing.SAME
    )


def test_a_head_from_other_inputs_is_another_cluster() -> None:
    assert standing(WHOLE, digests={"head": "other"}) is Standing.OTHER


@pytest.mark.parametrize(
    ("states", "membership"),
    [
        ({**WHOLE, "w1": "ended"}, membership_text(*ROLES)),
        ({"w1": "running", "head": "running"}, membership_text(*ROLES)),
        (WHOLE, None),
        (WHOLE, "{"),
    ],
)
def test_a_head_without_all_its_members_is_broken(states: dict[str, str], membership: str | None) -> None:
    assert standing(states, membership=membership) is Standing.BROKEN


def test_what_is_on_record_although_nothing_runs_is_remains() -> None:
    assert standing({}) is Standing.REMAINS


def test_a_worker_that_was_elsewhere_makes_it_another_cluster() -> None:
    moved = Member("w2", Role.WORKER, Destination("old.lan"), "10.10.0.1", 50052)
    text = Membership((moved,), "http://127.0.0.1:8080", "demo").to_json()
    assert standing({"w1": "running", "head": "running"}, membership=text) is Standing.OTHER
    assert standing(WHOLE, membership=text) is Standing.SAME


def test_a_worker_from_other_inputs_is_broken() -> None:
    assert standing(WHOLE, digests={"w2": "other"}) is Standing.BROKEN


def test_of_two_words_on_a_process_that_of_its_own_machine_counts() -> None:
    known = {
        "w1": facts(
            "w1", changes={"record:w1": record_text("w1", "running"), "record:w2": record_text("w2", "ended")}
        ),
        "w2": facts(
            "w2", changes={"record:w2": record_text("w2", "running"), "record:w1": record_text("w1", "ended")}
        ),
    }
    assert {name: process.runs for name, process in processes_of(known).items()} == {"w1": True, "w2": True}


def digest(nodes: str = NODES, text: str = RECIPE, **of_node: NodeFacts) -> str:
    return inputs_digest(inventory(nodes), recipe(text), all_facts(**of_node))


def test_free_memory_and_notes_do_not_change_the_digest() -> None:
    busy = facts("w1", devices=listing(CUDA.replace("23210 MiB free", "10 MiB free")))
    assert digest(w1=busy) == digest()
    assert digest(NODES.replace("{name: w1,", "{name: w1, labels: {site: attic}, host: w1.lan,")) == digest()
    assert digest(text=RECIPE + "source: https://example.org\n") == digest()


@pytest.mark.parametrize(
    ("nodes", "text"),
    [
        (NODES.replace("{name: w1,", "{name: w1, rpc: {port: 6000},"), RECIPE),
        (NODES.replace("{name: w1,", "{name: w1, env: {X: 1},"), RECIPE),
        (NODES.replace("10.10.0.0/24", "10.10.0.0/16"), RECIPE),
        (NODES, RECIPE.replace("4096", "8192")),
        (NODES, RECIPE + "server: {extra_args: [--jinja]}\n"),
    ],
)
def test_whatever_decides_the_plan_changes_the_digest(nodes: str, text: str) -> None:
    assert digest(nodes, text) != digest()


def test_another_program_or_model_file_changes_the_digest() -> None:
    assert digest(w1=facts("w1", changes={"program:/opt/llama/ggml-rpc-server": "999 67\n1"})) != digest()
    sized = [facts("head", asked_files=("/m",), files=f"{size} 1 /m\n") for size in (1000, 1001)]
    assert digest(head=sized[0]) != digest(head=sized[1])
