"""The draft model: where it goes, what it takes there, and what is left for the model itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from clusterctl.cluster.facts import NodeFacts
from clusterctl.cluster.model_file import Models
from clusterctl.cluster.plan import Plan, make_plan
from clusterctl.cluster.plan_report import plan_report
from clusterctl.errors import PlanDoesNotFit, UsageError
from clusterctl.model import MIB, HostMemory, Workload
from clusterctl.planning.margins import margin_bytes
from clusterctl.planning.memory import MemoryModel, whole_model_memory
from tests.unit.cluster_samples import CUDA, NODES, RECIPE, all_facts, facts, header, inventory, listing, recipe
from tests.unit.memory_truth import model_header
from tests.unit.synthetic import even_header

DRAFT = model_header("llama32-1b-Q8_0")
CARDS = listing(CUDA, "CUDA1: NVIDIA GeForce RTX 4090 (24154 MiB, 24000 MiB free)")
SERVING = NODES.replace("{name: head,", "{name: head, serve_only: true,")
CPU_ONLY = facts("head", devices="Available devices:\n  (none)\n")


def planned(draft: str, nodes: str = NODES, **of_node: NodeFacts) -> Plan:
    text = f"{RECIPE}draft: {draft}\n"
    return make_plan(inventory(nodes), recipe(text), all_facts(**of_node), Models(header(), DRAFT))


def budgets(plan: Plan) -> dict[str, int]:
    return {offer.label: offer.budget_bytes for offer in plan.offers}


def argument(plan: Plan, option: str) -> str:
    assert plan.head is not None
    return plan.head.argv[plan.head.argv.index(option) + 1]


def test_its_memory_is_taken_off_the_device_that_is_named() -> None:
    head = facts("head", devices=CARDS)
    plan = planned("{path: /m/d.gguf, device: CUDA0}", head=head)
    without = make_plan(inventory(), recipe(), all_facts(head=head), Models(header()))
    need = whole_model_memory(DRAFT, Workload(context=4096))
    pools = margin_bytes("cuda", need.compute_bytes) - margin_bytes("cuda")
    taken = {label: before - budgets(plan)[label] for label, before in budgets(without).items()}
    assert taken == {"w1/CUDA0": 0, "w2/CUDA0": 0, "head/CUDA0": need.total_bytes + pools, "head/CUDA1": 0}
    assert plan.draft is not None
    assert plan.draft.memory == need
    [step] = [offer.budget_steps[-1] for offer in plan.offers if offer.label == "head/CUDA0"]
    assert step.cause == "beside the draft model"


def test_without_a_name_it_goes_to_the_heads_device_with_most_room() -> None:
    plan = planned("{path: /m/d.gguf}", head=facts("head", devices=CARDS))
    assert plan.draft is not None
    assert plan.draft.device == "CUDA1"
    assert argument(plan, "--spec-draft-device") == "CUDA1"


def test_a_head_that_only_serves_may_still_draft_on_its_device() -> None:
    plan = planned("{path: /m/d.gguf}", SERVING)
    assert plan.draft is not None
    assert plan.draft.device == "CUDA0"
    assert "head/CUDA0" not in budgets(plan)


def test_on_unified_memory_draft_model_process_and_layers_share_what_there_is() -> None:
    unified = facts("head", devices=listing("CUDA0: NVIDIA GB10 (124609 MiB, 121444 MiB free)"))
    head = replace(unified, memory=HostMemory(124609, 30000))
    plan = planned("{path: /m/d.gguf}", head=head)
    assert plan.draft is not None
    held = budgets(plan)["head/CUDA0"] + plan.draft.memory.total_bytes + plan.draft.host.total_bytes
    assert held + plan.split.host.total_bytes <= (30000 - 1024) * MIB


def test_a_head_without_devices_drafts_in_its_own_memory() -> None:
    plan = planned("{path: /m/d.gguf}", head=CPU_ONLY)
    report = plan_report(plan).draft
    assert report is not None
    assert report.device is None
    assert report.total_mib == 0
    whole = MemoryModel(DRAFT, Workload(context=4096, cpu_layers=DRAFT.n_layer + 1)).host_memory(pipelined=False)
    assert report.host_mib == round(whole.total_bytes / MIB, 2)
    assert whole.model_bytes == DRAFT.total_bytes
    without = make_plan(inventory(), recipe(), all_facts(head=CPU_ONLY), Models(header()))
    assert plan.host_budget_bytes is not None
    assert without.host_budget_bytes is not None
    assert without.host_budget_bytes - plan.host_budget_bytes == whole.total_bytes
    assert plan.settings["draft_device"] == "none"
    assert plan.settings["draft_n_gpu_layers"] == 0


def test_a_host_too_small_for_it_is_refused() -> None:
    small = replace(CPU_ONLY, memory=HostMemory(3000, 2600))
    with pytest.raises(PlanDoesNotFit, match="the head's own memory needs"):
        planned("{path: /m/d.gguf}", head=small)


def test_a_device_that_the_head_lacks_is_refused_and_those_it_has_are_named() -> None:
    with pytest.raises(UsageError, match=r"draft.device is CUDA7, but the head has CUDA0, CUDA1"):
        planned("{path: /m/d.gguf, device: CUDA7}", head=facts("head", devices=CARDS))
    with pytest.raises(UsageError, match="has no device that takes a model"):
        planned("{path: /m/d.gguf, device: CUDA0}", head=CPU_ONLY)


def test_a_device_of_a_worker_is_not_the_heads() -> None:
    with pytest.raises(UsageError, match=r"draft\.device is RPC0"):
        planned("{path: /m/d.gguf, device: RPC0}")


def test_a_draft_model_larger_than_its_device_does_not_fit() -> None:
    text = f"{RECIPE}draft: {{path: /m/d.gguf}}\n"
    with pytest.raises(PlanDoesNotFit, match=r"the draft model needs \d+\.\d GiB on head/CUDA0"):
        make_plan(inventory(), recipe(text), all_facts(), Models(header(), even_header(32, layer_mib=900)))


def test_drafting_from_the_text_needs_no_model_and_no_device() -> None:
    text = f"{RECIPE}draft: {{type: ngram-mod, max_tokens: 8}}\n"
    plan = make_plan(inventory(), recipe(text), all_facts(), Models(header()))
    without = make_plan(inventory(), recipe(), all_facts(), Models(header()))
    assert plan.draft is None
    assert budgets(plan) == budgets(without)
    assert plan.workload.draft_tokens == 8
    assert plan.split.host.total_bytes > without.split.host.total_bytes


def test_every_drafted_token_is_counted_among_the_outputs() -> None:
    assert planned("{path: /m/d.gguf, max_tokens: 5}").workload.draft_tokens == 5
    assert planned("{path: /m/d.gguf}").workload.draft_tokens == 16
    assert planned("{type: ngram-mod}").workload.draft_tokens == 64
