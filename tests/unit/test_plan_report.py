"""What a plan says of itself: the document, the reasons behind it, and the answer when nothing fits."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from clusterctl.cli.main import run
from clusterctl.cluster.model_document import model_document
from clusterctl.cluster.model_file import Models
from clusterctl.cluster.plan import Plan, make_plan
from clusterctl.cluster.plan_report import plan_report
from clusterctl.cluster.recorded import plan_from_record, read_record
from clusterctl.errors import PlanDoesNotFit
from clusterctl.model import HostMemory
from clusterctl.plan_reports import BudgetStepReport, DraftReport
from clusterctl.planning.margins import margin_bytes
from clusterctl.ui.plan import plan_view
from clusterctl.ui.plan_reasons import reasons_view
from tests.unit.cluster_samples import NODES, RECIPE, all_facts, facts, header, inventory, listing, recipe
from tests.unit.synthetic import even_header
from tests.unit.ui_rendering import WIDTHS, rendered, widest, words
from tests.unit.ui_rendering import plan_report as sample_report

UNIFIED = "CUDA0: NVIDIA GB10 (124609 MiB, 121444 MiB free)"
MODEL = replace(even_header(64, layer_mib=900), file="/models/demo.gguf")


def plan() -> Plan:
    return make_plan(inventory(), recipe(), all_facts(), Models(header()))


def test_figures_are_rounded_and_unknown_ones_stay_unknown() -> None:
    estimate = plan_report(plan()).estimate
    assert estimate.decode_tok_s == round(estimate.decode_tok_s or 0, 2) != 0
    assert estimate.prefill_tok_s == round(estimate.prefill_tok_s or 0, 1) != 0
    assert estimate.prefill_ceiling_tok_s == round(estimate.prefill_ceiling_tok_s or 0, 1) != 0
    assert estimate.load_s is None


def test_what_is_promised_to_fit_does_where_the_heads_process_lies_beside_the_layers() -> None:
    """A shorter context leaves more of the unified memory to the layers, which the promise must reckon with."""
    head = replace(facts("head", devices=listing(UNIFIED)), memory=HostMemory(124609, 60000))
    endless = RECIPE.replace("4096", "100000000")
    with pytest.raises(PlanDoesNotFit, match="the head's own memory needs") as caught:
        make_plan(inventory(), recipe(endless), all_facts(head=head), Models(header()))
    assert caught.value.node == "head"
    promised = re.search(r"context: (\d+)", caught.value.hint or "")
    assert promised
    shorter = RECIPE.replace("4096", promised[1])
    assert make_plan(inventory(), recipe(shorter), all_facts(head=head), Models(header())).split.shares


def test_a_budget_is_told_step_by_step_up_to_its_end() -> None:
    for device in plan_report(plan()).devices:
        assert device.budget_steps[0] == BudgetStepReport("free", 23210)
        assert device.budget_steps[1].cause == "less 1024 MiB that stay free"
        assert device.budget_steps[-1].left_mib == device.budget_mib


def test_what_a_backend_takes_beside_is_told() -> None:
    made = plan()
    for device, share in zip(plan_report(made).devices, made.split.shares, strict=True):
        margin = margin_bytes("cuda", share.memory.compute_bytes)
        assert device.margin_mib == pytest.approx(margin / 1024**2, abs=0.01)
        assert device.total_mib + device.margin_mib <= device.budget_mib


def test_every_known_fault_that_was_looked_for_is_listed_with_a_verdict() -> None:
    told = {advisory.code: advisory.applies for advisory in plan_report(plan()).advisories}
    assert told["rpc-memory-safety"] == "no"
    silent = all_facts(**{name: facts(name, version="version: 1 (3ce7da2)") for name in ("w1", "w2", "head")})
    shallow = make_plan(inventory(), recipe(), silent, Models(header()))
    untold = {advisory.code: advisory.applies for advisory in plan_report(shallow).advisories}
    assert untold["rpc-memory-safety"] == "unknown"
    assert untold.keys() == told.keys()


def test_on_unified_memory_the_heads_process_and_its_device_share_what_there_is() -> None:
    head = replace(facts("head", devices=listing(UNIFIED)), memory=HostMemory(124609, 90000))
    made = make_plan(inventory(), recipe(), all_facts(head=head), Models(header()))
    [own] = [offer for offer in made.offers if offer.node == "head"]
    assert made.host_budget_bytes is not None
    assert own.budget_bytes + made.split.host.total_bytes <= made.host_budget_bytes
    assert own.budget_steps[-1].cause == "beside what the head's own process needs of this memory"


def test_reasons_name_budgets_notes_and_known_faults() -> None:
    made = plan()
    noted = replace(made, models=Models(replace(made.header, notes=("buffers were not measured",))))
    text = words(rendered(reasons_view(plan_report(noted)), 100))
    assert "budget of w1/CUDA0 left after 22.7 GiB free 21.7 GiB less 1024 MiB that stay free" in text
    assert "stay free for what the backend takes beside" in text
    assert "not certain: buffers were not measured" in text
    assert "known faults of llama.cpp looked for" in text


def test_a_device_without_layers_is_explained_too() -> None:
    tiny = facts("w1", devices=listing("CUDA0: NVIDIA GeForce GT 1030 (2000 MiB, 1500 MiB free)"))
    text = rendered(
        reasons_view(plan_report(make_plan(inventory(), recipe(), all_facts(w1=tiny), Models(header())))), 100
    )
    assert "budget of w1/CUDA0, which is left out" in text


@pytest.mark.parametrize("width", WIDTHS)
def test_reasons_are_never_wider_than_the_screen(width: int) -> None:
    assert widest(rendered(reasons_view(plan_report(plan())), width)) <= width


def test_a_draft_model_has_a_row_of_its_own() -> None:
    on_card = DraftReport("rtx", "CUDA0", 1250, 128, 300, 1678, 260)
    text = rendered(plan_view(replace(sample_report(), draft=on_card)), 120)
    assert "draft model on rtx/CUDA0" in text
    assert "1.6 GiB" in text
    on_host = DraftReport("rtx", None, 0, 0, 0, 0, 1800)
    text = rendered(plan_view(replace(sample_report(), draft=on_host)), 120)
    assert "draft model on the head's CPU" in text
    assert "1.8 GiB" in text


def command(tmp_path: Path, context: int, *options: str) -> list[str]:
    files = {
        "inventory.yaml": NODES,
        "recipe.yaml": RECIPE.replace("4096", str(context)),
        "facts.json": facts_text(),
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    places = [str(tmp_path / name) for name in files]
    return ["-i", places[0], "-r", places[1], "plan", "--facts", places[2], *options]


def facts_text() -> str:
    card = {"name": "CUDA0", "description": "NVIDIA GeForce RTX 3090", "total_mib": 24154, "free_mib": 23210}
    nodes = [{"name": name, "rpc_address": "10.10.0.9", "devices": [card]} for name in ("w1", "w2", "head")]
    return json.dumps({"nodes": nodes, "model": model_document(MODEL)})


def test_a_plan_that_fits_is_one_document_with_its_reasons(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(command(tmp_path, 4096, "--json")) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["fits"] is True
    assert document["devices"][0]["budget_steps"][0] == {"cause": "free", "left_mib": 23210.0}
    assert document["advisories"]
    speeds = document["estimate"]
    assert 0 < speeds["prefill_tok_s"] < speeds["prefill_ceiling_tok_s"]


def test_a_plan_that_does_not_fit_is_one_document_as_well(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(command(tmp_path, 400_000, "--json")) == 5
    shown = capsys.readouterr()
    document = json.loads(shown.out)
    assert document["ok"] is False
    assert document["fits"] is False
    assert document["error"]["exit_code"] == 5
    assert "more than its devices'" in document["error"]["message"]
    assert "any one of these would make it fit" in document["error"]["hint"]
    assert "more than its devices'" in shown.err


def test_reasons_are_shown_when_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(command(tmp_path, 4096)) == 0
    assert "budget of" not in capsys.readouterr().out
    assert run(command(tmp_path, 4096, "--explain")) == 0
    assert "budget of w1/CUDA0" in capsys.readouterr().out


def test_facts_that_are_not_there_are_an_error_of_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = command(tmp_path, 4096)
    (tmp_path / "facts.json").unlink()
    assert run(arguments) == 2
    assert "no such file" in capsys.readouterr().err


def test_a_plan_from_facts_reports_what_it_was_made_of() -> None:
    made = plan_from_record(inventory(), recipe(), read_record(facts_text(), "facts.json"))
    report = plan_report(made)
    assert report.n_layer == 64
    assert sum(report.tensor_split) == 65
    assert report.commands == ()
