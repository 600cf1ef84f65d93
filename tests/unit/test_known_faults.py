"""Known faults before a plan is made: judged from the nodes alone, and as `up` would with a recipe."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from clusterctl.cluster.examine import Examination, check_report, demand_fitness
from clusterctl.cluster.facts import NodeFacts
from clusterctl.cluster.fault_check import with_known_faults
from clusterctl.cluster.known_faults import demand_no_known_fault
from clusterctl.cluster.model_file import Models
from clusterctl.cluster.plan import make_plan
from clusterctl.cluster.skew import judge_skew
from clusterctl.cluster.ways import Ways
from clusterctl.config.inventory import Inventory
from clusterctl.config.recipe import Recipe
from clusterctl.errors import NodeUnreachable, StartFailed
from clusterctl.model import Problem, Severity
from tests.unit.cluster_samples import RECIPE, all_facts, facts, header, inventory, listing, recipe

BROKEN = "version: 8487 (3ce7da2)\n"
ALONE = "version: 1\ncluster: demo\nnodes: [{name: head, role: head}]\n"
ROCM = listing("ROCm0: AMD Radeon (24154 MiB, 23210 MiB free)")


@pytest.fixture(autouse=True)
def _no_advisories_of_their_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


def all_on(version: str) -> dict[str, NodeFacts]:
    return all_facts(**{name: facts(name, version=version) for name in ("w1", "w2", "head")})


def examined(known: Mapping[str, NodeFacts], nodes: Inventory) -> Examination:
    gone = {node.name: NodeUnreachable("gone", node=node.name) for node in nodes.nodes if node.name not in known}
    return Examination(known, gone, judge_skew(nodes, known), dict.fromkeys(known, ()), Ways())


def checked(
    known: Mapping[str, NodeFacts], wanted: Recipe | None = None, nodes: Inventory | None = None
) -> Examination:
    nodes = nodes or inventory()
    return with_known_faults(nodes, wanted, examined(known, nodes), Models(header()) if wanted else None)


def problems(examination: Examination) -> dict[str, Problem]:
    return {problem.code: problem for problem in examination.problems["head"]}


def test_a_sound_build_with_or_without_a_recipe_has_no_known_fault() -> None:
    assert problems(checked(all_facts())) == {}
    assert problems(checked(all_facts(), recipe())) == {}


@pytest.mark.parametrize("wanted", [None, recipe()])
def test_a_build_that_fails_over_rpc_is_an_error_as_it_is_for_up(wanted: Recipe | None) -> None:
    examination = checked(all_on(BROKEN), wanted)
    assert problems(examination)["rpc-broken-build"].severity is Severity.ERROR
    assert check_report(inventory(), examination).ok is False
    with pytest.raises(StartFailed) as in_check:
        demand_fitness(examination, allow_skew=False)
    plan = make_plan(inventory(), recipe(), all_on(BROKEN), Models(header()))
    with pytest.raises(StartFailed) as in_up:
        demand_no_known_fault(plan.known_faults, "head")
    assert str(in_check.value) == str(in_up.value)
    assert (in_check.value.node, in_check.value.hint) == ("head", in_up.value.hint)
    assert "to overrule, give `rpc-broken-build` another severity in " in str(in_up.value.hint)


def test_a_head_alone_has_no_fault_of_rpc() -> None:
    alone = {"head": facts("head", version=BROKEN)}
    assert problems(checked(alone, nodes=inventory(ALONE))) == {}


def test_what_a_recipe_does_wrong_is_told_once_it_is_named() -> None:
    quantised = recipe(RECIPE + "kv_cache: {k: q8_0, v: q4_0}\n")
    assert "kv-types-unequal-over-rpc" in problems(checked(all_facts(), quantised))
    assert problems(checked(all_facts())) == {}


def test_an_applicable_note_is_told_as_what_it_is() -> None:
    rocm = {name: facts(name, version="version: 8102 (3ce7da2)", devices=ROCM) for name in ("w1", "w2", "head")}
    found = problems(checked(all_facts(**rocm), recipe()))
    assert found["load-hang-without-direct-io"].message.startswith("with ROCm and models over 100 GB")


def test_a_build_without_a_number_rules_nothing_out_and_says_so() -> None:
    for wanted in (None, recipe()):
        found = problems(checked(all_on("version: 1 (3ce7da2)\n"), wanted))
        assert [problem.severity for problem in found.values()] == [Severity.NOTE]
        assert "faults-not-ruled-out" in found


def test_a_plan_that_cannot_be_made_leaves_the_faults_of_the_nodes() -> None:
    too_long = recipe(RECIPE.replace("4096", "100000000"))
    assert "rpc-broken-build" in problems(checked(all_on(BROKEN), too_long))
    without_w1 = {name: own for name, own in all_on(BROKEN).items() if name != "w1"}
    assert "rpc-broken-build" in problems(checked(without_w1, recipe()))


def test_without_the_head_nothing_is_said() -> None:
    headless = {name: own for name, own in all_facts().items() if name != "head"}
    examination = checked(headless)
    assert all(found == () for found in examination.problems.values())
