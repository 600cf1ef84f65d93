"""Planning from recorded facts: the same plan as on the nodes, and clear words for what a file by hand lacks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.cli.app import to_json
from clusterctl.cluster.examine import Examination
from clusterctl.cluster.facts import NodeFacts
from clusterctl.cluster.link import Link as Way
from clusterctl.cluster.model_document import model_document, model_of
from clusterctl.cluster.model_file import Models
from clusterctl.cluster.plan import Plan, make_plan
from clusterctl.cluster.plan_report import plan_report
from clusterctl.cluster.recorded import plan_from_record, read_record
from clusterctl.cluster.recording import recorded_report
from clusterctl.cluster.skew import judge_skew
from clusterctl.cluster.ways import Ways
from clusterctl.errors import PlanDoesNotFit, StartFailed, UsageError
from clusterctl.llama.model_header import ModelHeader
from clusterctl.model import Link, Problem, Severity
from tests.unit.cluster_samples import NODES, RECIPE, all_facts, facts, header, inventory, recipe
from tests.unit.memory_truth import model_header, model_names

FILE = "/models/demo.gguf"
MODEL = header()
CACHING = NODES.replace("{name: w1,", "{name: w1, rpc: {cache: true}, speed: {bandwidth_gb_s: 936},")
DRAFTING = f"{RECIPE}draft: {{path: /models/small.gguf}}\n"
WAYS = {"w1": Way(True, round_trip_ms=0.2, mbit_s=9400.0), "w2": Way(None, fault="it runs")}


def named(model: ModelHeader, file: str = FILE) -> ModelHeader:
    document = {**model_document(model), "file": file}
    return model_of(json.loads(json.dumps(document)))


def recorded_text(nodes: str, known: Mapping[str, NodeFacts], models: Models | None, *problems: Problem) -> str:
    """What `check --json` prints of these facts."""
    where = inventory(nodes)
    examination = Examination(
        facts=known,
        failed={},
        skew=judge_skew(where, known),
        problems=dict.fromkeys(known, problems),
        ways=Ways(links=WAYS),
    )
    return to_json(recorded_report(where, examination, models))


def planned(nodes: str, text: str, record: str) -> Plan:
    return plan_from_record(inventory(nodes), recipe(text), read_record(record, "facts.json"))


@pytest.mark.parametrize("text", [RECIPE, DRAFTING, f"{RECIPE}split: {{strategy: speed, cpu_layers: 2}}\n"])
@pytest.mark.parametrize("nodes", [NODES, CACHING])
def test_recorded_facts_lead_to_the_plan_that_the_nodes_lead_to(nodes: str, text: str) -> None:
    models = Models(named(MODEL), named(MODEL, "/models/small.gguf") if text is DRAFTING else None)
    links = {name: Link.measured(way.mbit_s, way.round_trip_ms) for name, way in WAYS.items()}
    live = make_plan(inventory(nodes), recipe(text), all_facts(), models, links)
    from_record = planned(nodes, text, recorded_text(nodes, all_facts(), models))
    assert from_record == live
    assert plan_report(from_record) == plan_report(live)
    assert from_record.head is not None


@pytest.mark.parametrize("name", model_names())
def test_a_model_comes_back_from_its_document(name: str) -> None:
    model = model_header(name)
    text = json.dumps(model_document(model))
    assert model_of(json.loads(text)) == model
    assert len(text) < 40_000


def by_hand(*, model: object = None, **of_head: object) -> str:
    """The least that one has to write: devices, an address for each worker, and a model."""
    card = {"name": "CUDA0", "description": "NVIDIA GeForce RTX 5090", "total_mib": 32607, "free_mib": 32000}
    workers = [
        {"name": name, "devices": [card], "rpc_address": f"10.10.0.{at}"} for name, at in (("w1", 21), ("w2", 22))
    ]
    head = {"name": "head", "devices": [card], **of_head}
    return json.dumps({"nodes": [*workers, head], "model": model or model_document(named(MODEL))})


def test_machines_that_nobody_has_can_be_planned_for() -> None:
    plan = planned(NODES, RECIPE, by_hand())
    assert [share.offer.label for share in plan.split.shares] == ["w1/CUDA0", "w2/CUDA0", "head/CUDA0"]
    assert plan.estimate.decode_tok_s is not None
    assert plan.estimate.load_s is None


def test_commands_that_can_t_be_told_are_left_out_and_this_is_said() -> None:
    plan = planned(NODES, RECIPE, by_hand())
    advice = {item.code: item.message for item in plan.advice}
    assert plan_report(plan).commands == ()
    assert "no program of llama.cpp with its options on w1, w2, head" in advice["no-commands"]


def test_an_address_may_stand_in_the_inventory_instead() -> None:
    document = json.loads(by_hand())
    del document["nodes"][0]["rpc_address"]
    with pytest.raises(UsageError, match="w1: the facts give it no address"):
        planned(NODES, RECIPE, json.dumps(document))
    nodes = NODES.replace("{name: w1,", "{name: w1, rpc: {address: 10.10.0.31},")
    assert planned(nodes, RECIPE, json.dumps(document)).split.shares[0].offer.rpc_endpoint == "10.10.0.31:50052"


def test_what_does_not_fit_does_not_fit_here_either() -> None:
    with pytest.raises(PlanDoesNotFit):
        planned(NODES, RECIPE.replace("4096", "100000000"), by_hand())


def test_what_a_node_was_refused_for_is_said() -> None:
    problem = Problem("port-taken", Severity.ERROR, "port 50052 is held by nginx", "")
    note = Problem("worker-cache", Severity.NOTE, "a large cache", "")
    apart = {**all_facts(), "w2": facts("w2", version="version: 10434 (7e4c0a9)", commits=["7e4c0a9"])}
    plan = planned(NODES, RECIPE, recorded_text(NODES, apart, Models(named(MODEL)), problem, note))
    said = [(item.code, item.message) for item in plan.advice if item.code.startswith("recorded-")]
    assert said[0] == ("recorded-skew", "when the facts were recorded, the builds were no match: mismatch")
    assert said[1] == ("recorded-problem", "w1: port 50052 is held by nginx; with this, `up` would refuse")
    assert len(said) == 4


def test_a_plan_that_is_known_to_fail_is_refused_as_on_the_nodes() -> None:
    build = {"tag": "b8487", "number": 8487, "commit": None, "version": None}
    with pytest.raises(StartFailed, match="known to fail"):
        planned(NODES, RECIPE, by_hand(build=build))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nodes": []}, "w1: it is not in the facts"),
        ({"nodes": {}}, "`nodes` must be a list of maps"),
        ({"nodes": ["w1"]}, "`nodes` must be a list of maps"),
        ({"nodes": [{"devices": []}]}, r"nodes\[0\].name: field required"),
        ({"nodes": [{"name": "w1", "devices": [{"name": "CUDA0"}]}]}, r"nodes\[0\].devices\[0\].free_mib: field"),
        ({"nodes": [{"name": "w1", "reachable": False}]}, "w1: it could not be reached when the facts"),
        ({"nodes": [{"name": "w1"}]}, "w1: the facts list no devices of it"),
        ({"model": None}, "the facts say nothing of the model /models/demo.gguf"),
        ({"model": []}, "model: must be a map"),
        ({"model": {}}, "model: version is None, and 1 is known"),
        ({"model": {**model_document(named(MODEL)), "version": 9}}, "model: version is 9"),
        ({"model": {**model_document(named(MODEL)), "layers": []}}, "model: layers must be a list of maps"),
        ({"model": {**model_document(named(MODEL)), "n_embd": "wide"}}, "model: n_embd: input should be a valid"),
        ({"model": {**model_document(named(MODEL)), "n_embd": -1}}, "model: a size is negative"),
        (
            {"model": model_document(named(MODEL, "/models/other.gguf"))},
            "of the model /models/other.gguf, and the",
        ),
    ],
)
def test_a_file_that_lacks_something_says_what(change: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        planned(NODES, RECIPE, json.dumps({**json.loads(by_hand()), **change}))
    assert "check --json" in str(caught.value.hint)


@pytest.mark.parametrize("count", [0, -1, 10**12, True, "many", None])
def test_a_layer_can_t_be_repeated_without_measure(count: object) -> None:
    document = model_document(named(MODEL))
    rows = document["layers"]
    assert isinstance(rows, list)
    if count is True:
        assert model_of({**document, "layers": [{**rows[0], "count": count}]}).n_layer == 1
        return
    with pytest.raises(UsageError, match="layers must be"):
        model_of({**document, "layers": [{**rows[0], "count": count}]})


def test_a_draft_model_must_be_in_the_facts_too() -> None:
    with pytest.raises(UsageError, match="nothing of the draft model /models/small"):
        planned(NODES, DRAFTING, by_hand())


def test_without_a_recipe_neither_models_nor_options_are_recorded() -> None:
    document = json.loads(recorded_text(NODES, all_facts(), None))
    assert document["model"] is None
    assert {node["options"] for node in document["nodes"]} == {None}
    assert all(node["memory"]["available_mib"] for node in document["nodes"])


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["nodes", "model", "name", "devices", "layers", "version"]), inner)
    ),
    max_leaves=12,
)


@given(anything | st.dictionaries(st.sampled_from(["nodes", "model", "draft", "skew"]), anything), st.text())
def test_any_document_is_read_or_refused_in_words(document: object, junk: str) -> None:
    for text in (json.dumps(document), junk):
        with suppress(UsageError):
            read_record(text, "facts.json")


def test_a_document_nested_without_end_is_refused() -> None:
    with pytest.raises(UsageError, match="no JSON that planning can read"):
        read_record("[" * 200_000, "facts.json")
