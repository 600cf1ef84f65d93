"""Nodes on different builds of llama.cpp: b10068 and b10092 speak RPC 4.0.3, b10434 speaks 5.0.0."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.conftest import MakeLab
from tests.lab.lab import Lab, NodeSpec
from tests.lab.operator import operator_of, remains
from tools.fetch import BUILDS

PAIRS = [(head, worker) for head in BUILDS for worker in BUILDS if head != worker]


@pytest.fixture(scope="module")
def lab(make_lab: MakeLab) -> Lab:
    return make_lab([NodeSpec(build, build=build, models=True) for build in BUILDS])


@pytest.mark.parametrize(("head", "worker"), PAIRS)
def test_another_build_on_a_worker_is_refused_and_nothing_starts(
    lab: Lab, tmp_path: Path, head: str, worker: str
) -> None:
    operator = operator_of(lab, tmp_path, head=head, workers=[worker])
    checked = operator.run("check", "--json")
    assert checked.exit_code == 4
    [found] = checked.document["skew"]["evidence"]
    assert (found["node"], found["verdict"]) == (worker, "mismatch")
    assert f"commit {BUILDS[worker].commit}, not {BUILDS[head].commit}" in found["reason"]
    # These builds tell no number, by which a release is found.
    assert found["fix"].startswith(f"`clusterctl install --build {BUILDS[head].commit} --from source FILE` ")
    refused = operator.run("up")
    assert refused.exit_code == 4
    assert f"{worker}: " in refused.stderr
    assert f"{BUILDS[head].commit}" in refused.stderr
    assert remains(lab) == {}


def test_check_tells_which_nodes_differ(lab: Lab, tmp_path: Path) -> None:
    done = operator_of(lab, tmp_path, head="b10434", workers=["b10068", "b10092"]).run("check", "--json")
    assert done.exit_code == 4
    assert done.document["ok"] is False
    skew = done.document["skew"]
    assert skew["status"] == "mismatch"
    assert [group["nodes"] for group in skew["groups"]] == [["b10068"], ["b10092"], ["b10434"]]
    commits = {node["name"]: node["build"]["commit"] for node in done.document["nodes"]}
    assert commits == {name: artifact.commit for name, artifact in BUILDS.items()}


@pytest.mark.parametrize("command", ["plan", "up"])
def test_a_pin_that_no_node_meets_is_a_skew(lab: Lab, tmp_path: Path, command: str) -> None:
    operator = operator_of(lab, tmp_path, head="b10434").with_node("b10434", llama={"build": "b1"})
    assert operator.run(command).exit_code == 4
    assert remains(lab) == {}


def test_skew_within_one_protocol_can_be_allowed(lab: Lab, tmp_path: Path) -> None:
    operator = operator_of(lab, tmp_path, head="b10092", workers=["b10068"])
    operator.succeed("plan", "--allow-skew")
    assert "build-skew  b10068  " in operator.succeed("up", "--allow-skew").stderr
    assert operator.succeed("status", "--json").document["state"] == "up"
    operator.succeed("down")
    assert remains(lab) == {}


@pytest.mark.parametrize(("head", "worker"), [("b10434", "b10068"), ("b10068", "b10434")])
def test_allowed_skew_between_protocols_fails_and_leaves_nothing(
    lab: Lab, tmp_path: Path, head: str, worker: str
) -> None:
    failed = operator_of(lab, tmp_path, head=head, workers=[worker]).run("up", "--allow-skew")
    assert failed.exit_code == 6
    assert f"{worker}: " in failed.stderr
    assert "speaks RPC" in failed.stderr
    assert remains(lab) == {}
