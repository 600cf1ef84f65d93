"""Programs of an older build that are still there: one that runs behind new files, one under the old name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.lab.conftest import MakeLab
from tests.lab.lab import Lab, NodeSpec
from tests.lab.operator import Operator, operator_of, remains
from tools.fetch import BUILDS

OLD, NEW = "b10092", "b10434"
USED = "llama.cpp/bin"  # below the home: one of the places that are looked at
OLD_NAME = "/usr/local/bin/rpc-server"


@pytest.fixture(scope="module")
def lab(make_lab: MakeLab) -> Lab:
    return make_lab(
        [NodeSpec(name, build=None, models=name == "head", aside=(OLD, NEW)) for name in ("head", "worker")]
    )


@pytest.fixture
def operator(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    for node in lab.nodes:
        lab.ssh(node, "mkdir llama.cpp")
        use(lab, node, NEW)
    yield operator_of(lab, tmp_path_factory.mktemp("operator"), workers=["worker"])
    for node in lab.nodes:
        lab.ssh(node, f"rm -r llama.cpp; rm -f {OLD_NAME}")
    assert remains(lab) == {}


def use(lab: Lab, node: str, build: str) -> None:
    """Put this build in the place of the one before."""
    lab.ssh(node, f"ln -sfn /opt/{build} {USED}")


def verdicts(check: dict[str, Any]) -> dict[tuple[str, str], str]:
    return {(found["node"], found["subject"]): found["verdict"] for found in check["skew"]["evidence"]}


def test_a_worker_of_an_older_build_that_runs_behind_new_files_is_no_match(lab: Lab, operator: Operator) -> None:
    for node in lab.nodes:
        use(lab, node, OLD)
    operator.succeed("up")
    operator.succeed("down", "--node", "head")
    for node in lab.nodes:
        use(lab, node, NEW)

    checked = operator.run("check", "--json")
    assert checked.exit_code == 4
    assert verdicts(checked.document) == {
        ("worker", "files"): "match",
        ("worker", "running process"): "mismatch",
    }
    _, running = checked.document["skew"]["evidence"]
    assert BUILDS[OLD].commit in running["reason"]
    assert "clusterctl up --replace" in running["fix"]
    worker = checked.document["nodes"][0]
    assert (worker["build"]["commit"], worker["rpc_protocol"]) == (BUILDS[NEW].commit, "4.0.3")

    operator.succeed("up", "--replace")
    assert verdicts(operator.succeed("check", "--json").document) == {("worker", "files"): "match"}
    operator.succeed("down")


def test_a_worker_that_runs_from_another_place_than_was_looked_at_is_unknown(lab: Lab, operator: Operator) -> None:
    before, after = (placed(operator, f"/opt/{build}") for build in (OLD, NEW))
    before.succeed("up")
    before.succeed("down", "--node", "head")
    checked = after.run("check", "--json")
    assert checked.exit_code == 4
    assert verdicts(checked.document) == {("worker", "files"): "match", ("worker", "running process"): "unknown"}
    assert f"runs /opt/{OLD}/ggml-rpc-server" in checked.document["skew"]["evidence"][1]["reason"]
    after.succeed("down")


def placed(operator: Operator, bin_dir: str) -> Operator:
    return operator.with_node("head", llama={"bin_dir": bin_dir}).with_node("worker", llama={"bin_dir": bin_dir})


def test_the_library_that_the_inventorys_variables_lead_to_is_the_one_that_counts(operator: Operator) -> None:
    led_astray = operator.with_node("worker", env={"LD_LIBRARY_PATH": f"/opt/{OLD}"})
    checked = led_astray.run("check", "--json")
    assert checked.exit_code == 4
    assert BUILDS[OLD].commit in checked.document["skew"]["evidence"][0]["reason"]


def test_a_program_whose_libraries_only_the_inventorys_variables_lead_to_is_whole(
    lab: Lab, operator: Operator
) -> None:
    programs = f"/opt/{NEW}/ggml-rpc-server /opt/{NEW}/llama-server"
    lab.ssh("worker", f"rm {USED}; mkdir {USED}; cp {programs} {USED}/")
    assert operator.run("check").exit_code != 0
    operator.with_node("worker", env={"LD_LIBRARY_PATH": f"/opt/{NEW}"}).succeed("check")


def test_what_stands_in_a_script_is_no_commit_of_the_worker(lab: Lab, operator: Operator) -> None:
    lab.ssh("worker", f"rm {USED}; mkdir {USED}")
    wrapper = lab.nodes["worker"].home / USED / "ggml-rpc-server"
    wrapper.write_text(f'#!/bin/sh\n# {BUILDS[NEW].commit}\nexec /opt/{OLD}/ggml-rpc-server "$@"\n')
    wrapper.chmod(0o755)
    checked = operator.run("check", "--json")
    assert checked.exit_code == 4
    assert verdicts(checked.document) == {("worker", "files"): "unknown"}


def test_of_both_names_the_new_one_is_used_and_the_old_one_is_noted(lab: Lab, operator: Operator) -> None:
    lab.ssh("worker", f"mkdir -p /usr/local/bin; ln -s /opt/{OLD}/ggml-rpc-server {OLD_NAME}")
    check = operator.succeed("check", "--json").document
    worker = check["nodes"][0]
    assert worker["programs"]["rpc_server"] == f"/root/{USED}/ggml-rpc-server"
    assert [problem["code"] for problem in worker["problems"]] == ["two-worker-programs"]
    assert f"{OLD_NAME} is there too" in worker["problems"][0]["message"]


def test_under_the_old_name_alone_an_older_build_is_no_match(lab: Lab, operator: Operator) -> None:
    lab.ssh("worker", f"mkdir -p /usr/local/bin; ln -s /opt/{OLD}/ggml-rpc-server {OLD_NAME}")
    lab.ssh("worker", f"rm {USED}; mkdir {USED}; ln -s /opt/{NEW}/llama-server {USED}/")
    checked = operator.run("check", "--json")
    assert checked.exit_code == 4
    assert checked.document["nodes"][0]["programs"]["rpc_server"] == OLD_NAME
    assert verdicts(checked.document) == {("worker", "files"): "mismatch"}
    assert BUILDS[OLD].commit in checked.document["skew"]["evidence"][0]["reason"]


@pytest.mark.parametrize("pin", [None, BUILDS[NEW].commit])
def test_a_worker_program_without_a_server_is_judged_by_its_library(
    lab: Lab, operator: Operator, pin: str | None
) -> None:
    lab.ssh("worker", f"rm {USED}; mkdir {USED}; ln -s /opt/{NEW}/ggml-rpc-server {USED}/")
    if pin:
        operator = operator.with_inventory({**operator.inventory, "defaults": pinned(operator, pin)})
    worker = operator.succeed("check", "--json").document["nodes"][0]
    assert worker["programs"] == {"llama_server": None, "rpc_server": f"/root/{USED}/ggml-rpc-server"}
    assert worker["build"]["commit"] == BUILDS[NEW].commit
    assert [device["name"] for device in worker["devices"]] == ["CPU"]


def test_a_worker_program_without_a_server_of_another_build_is_no_match(lab: Lab, operator: Operator) -> None:
    lab.ssh("worker", f"rm {USED}; mkdir {USED}; ln -s /opt/{OLD}/ggml-rpc-server {USED}/")
    for asked in (operator, operator.with_inventory({**operator.inventory, "defaults": pinned(operator, NEW)})):
        assert asked.run("check").exit_code == 4


def pinned(operator: Operator, pin: str) -> dict[str, Any]:
    """The inventory's defaults with a pin."""
    return {**operator.inventory["defaults"], "llama": {"build": pin}}
