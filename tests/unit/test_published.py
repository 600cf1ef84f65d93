"""Published experiments, planned from recorded facts: splits and speeds against what was measured."""

from __future__ import annotations

import json
import shlex

import pytest

from clusterctl.cli.main import run
from clusterctl.errors import PlanDoesNotFit
from clusterctl.llama.model_header import ModelHeader
from tests.unit import memory_truth
from tools.published.experiments import ROOT, Experiment, experiments
from tools.published.shapes import model_header
from tools.published.table import FILE, table_text

ALL = experiments()
BUILT = [experiment for experiment in ALL if experiment.published_tok_s]
every = pytest.mark.parametrize("experiment", ALL, ids=lambda experiment: experiment.name)
every_built = pytest.mark.parametrize("experiment", BUILT, ids=lambda experiment: experiment.name)
# How far a device's planned part of the layers may be from its published part of the memory.
SPLIT_TOLERANCE = 0.06
PREFILL_TOLERANCE = 1.4


def command_of(experiment: Experiment) -> list[str]:
    """The command line that the recipe's own comment gives."""
    text = (ROOT / "recipes" / f"{experiment.name}.yaml").read_text("utf-8")
    [line] = [line for line in text.splitlines() if line.startswith("#   clusterctl ")]
    return shlex.split(line.removeprefix("#   clusterctl "))


def test_every_recipe_with_a_source_is_an_experiment() -> None:
    sourced = {path.stem for path in (ROOT / "recipes").glob("*.yaml") if "\nsource: " in path.read_text("utf-8")}
    assert sourced - {"example"} == {experiment.name for experiment in ALL}
    assert {path.stem for path in (ROOT / "recipes" / "facts").iterdir()} == {each.name for each in ALL}


@every
def test_the_facts_are_those_of_the_experiment(experiment: Experiment) -> None:
    assert experiment.facts_file.read_text("utf-8") == experiment.facts_text(), "run python -m tools.published"


def test_the_table_is_up_to_date() -> None:
    assert FILE.read_text("utf-8") == table_text(ALL), "run python -m tools.published"


@pytest.mark.parametrize(
    ("name", "measured"),
    [
        ("qwen2.5-72b-q4_k_m", "qwen25-72b-Q4_K_M"),
        ("llama-3.1-8b-q4_k_m", "llama31-8b-Q4_K_M"),
        ("deepseek-v3-671b-q4_k_m", "deepseek-v3-Q4_K_M"),
    ],
)
def test_shapes_equal_the_headers_that_were_measured(name: str, measured: str) -> None:
    def sizes(header: ModelHeader) -> tuple[object, ...]:
        return (header.layers, header.output_bytes, header.input_bytes, header.n_vocab, header.total_bytes)

    assert sizes(model_header(name, "x.gguf")) == sizes(memory_truth.model_header(measured))


@pytest.mark.parametrize(
    ("name", "published_gb"),
    [
        ("qwen2.5-7b-q4_k_m", 4.68),
        ("qwen2.5-72b-q4_k_m", 47.4),
        ("llama-3.3-70b-q4_k_m", 42.5),
        ("minimax-m2.5-reap-139b-q8_0", 148.2),
        ("qwen3.5-397b-a17b-ud-q4_k_xl", 220.1),
        ("qwen3.6-35b-a3b-q8_0", 36.9),
        ("qwen3-vl-30b-a3b-q5_k_m", 21.7),
        ("kimi-k2.5-q2_k_xl", 375),
        ("deepseek-v3-671b-q4_k_m", 404.5),
    ],
)
def test_shapes_are_as_large_as_the_published_files(name: str, published_gb: float) -> None:
    assert model_header(name, "x.gguf").total_bytes / 1e9 == pytest.approx(published_gb, rel=0.02)


@every_built
def test_the_planned_split_is_the_published_one(experiment: Experiment) -> None:
    split = experiment.plan().split
    assert not split.unused
    if experiment.split:
        planned = [slots / sum(split.tensor_split) for slots in split.tensor_split]
        published = [part / sum(experiment.split) for part in experiment.split]
        assert planned == pytest.approx(published, abs=SPLIT_TOLERANCE)


@every_built
def test_the_estimate_is_near_what_was_measured(experiment: Experiment) -> None:
    expected, measured = experiment.plan().estimate.decode_tok_s, experiment.published_tok_s
    assert expected is not None
    assert measured is not None
    assert measured / experiment.tolerance < expected < measured * experiment.tolerance


@pytest.mark.parametrize(
    "experiment",
    [each for each in ALL if each.published_prefill_tok_s and each.is_prefill_comparable],
    ids=lambda experiment: experiment.name,
)
def test_the_estimate_of_prefill_is_near_what_was_measured(experiment: Experiment) -> None:
    expected, measured = experiment.plan().estimate, experiment.published_prefill_tok_s
    assert expected.prefill_tok_s is not None
    assert expected.prefill_ceiling_tok_s is not None
    assert measured is not None
    assert measured / PREFILL_TOLERANCE < expected.prefill_tok_s < measured * PREFILL_TOLERANCE
    assert measured < expected.prefill_ceiling_tok_s


@pytest.mark.parametrize(
    "experiment", [each for each in ALL if "load_s" in each.recipe.expect], ids=lambda experiment: experiment.name
)
def test_the_time_to_load_is_near_what_was_measured(experiment: Experiment) -> None:
    assert experiment.plan().estimate.load_s == pytest.approx(experiment.recipe.expect["load_s"], rel=0.1)


def test_where_one_machine_alone_was_much_faster_the_plan_says_so() -> None:
    [experiment] = [each for each in ALL if each.name == "m2ultra-gb10-qwen2.5-7b"]
    advice = {item.code: item.message for item in experiment.plan().advice}
    assert advice["fits-on-one-node"].startswith("studio alone can hold the model")


def test_a_draft_model_takes_its_part_of_the_heads_card() -> None:
    [experiment] = [each for each in ALL if each.draft]
    plan = experiment.plan()
    assert plan.draft is not None
    assert plan.draft.device == "CUDA0"
    own, other = (
        next(share for share in plan.split.shares if share.offer.label == f"desktop/CUDA{number}")
        for number in (0, 1)
    )
    # The larger card would hold more layers than the smaller one, if it did not hold the draft model as well.
    assert own.slots < other.slots


def test_the_cluster_that_was_never_bought_does_not_fit_and_is_told_what_would() -> None:
    [experiment] = [each for each in ALL if not each.published_tok_s]
    with pytest.raises(PlanDoesNotFit, match=r"GiB more than its devices' \d+\.\d GiB") as caught:
        experiment.plan()
    assert "cpu_layers" in str(caught.value.hint)
    assert "GiB more on" in str(caught.value.hint)


@every
def test_the_command_in_the_recipe_runs(
    experiment: Experiment, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    exit_code = run([*command_of(experiment), "--json"])
    document = json.loads(capsys.readouterr().out)
    assert document["fits"] is (exit_code == 0) is bool(experiment.published_tok_s)
