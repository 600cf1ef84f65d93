"""Do all nodes run the same build? Whatever can't be told is never a match."""

from __future__ import annotations

import pytest

from clusterctl.cluster.examine import skew_error
from clusterctl.cluster.preflight import judge_node
from clusterctl.cluster.record import Record
from clusterctl.cluster.skew import judge_skew
from clusterctl.cluster.stated import stated_build
from clusterctl.cluster.up_planning import skew_warnings
from clusterctl.config.inventory import Inventory
from clusterctl.errors import BuildSkew, NodesFailed
from clusterctl.llama.wire import RpcProtocol
from clusterctl.model import Build, Outcome, Role
from clusterctl.reports import SkewReport
from tests.unit.cluster_samples import NODES, VERSION, all_facts, facts, inventory

OTHER_COMMIT = "7e4c0a9"
OTHER_VERSION = f"version: 10434 ({OTHER_COMMIT})\n"
ALONE = """
version: 1
cluster: demo
nodes:
  - {name: head, role: head}
"""


def pinned(build: str) -> Inventory:
    return inventory(NODES.replace("network:", f"defaults: {{llama: {{build: {build}}}}}\nnetwork:"))


def verdicts(report: SkewReport) -> dict[tuple[str, str], str]:
    return {(item.node, item.subject): item.verdict for item in report.evidence}


def test_the_same_commit_everywhere_is_a_match() -> None:
    report = judge_skew(inventory(), all_facts())
    assert report.status == "match"
    assert [(group.build, group.nodes) for group in report.groups] == [("b10092 (3ce7da2)", ("w1", "w2", "head"))]
    assert skew_error(report) is None


def test_what_up_allows_it_still_warns_of_node_by_node() -> None:
    other = facts("w2", version=OTHER_VERSION, commits=[OTHER_COMMIT])
    [warning] = skew_warnings(judge_skew(inventory(), all_facts(w2=other)))
    assert (warning.node, warning.outcome) == ("w2", Outcome.WARNING)
    assert f"files: mismatch: the worker's library names commit {OTHER_COMMIT}" in warning.detail
    assert "`clusterctl install --build b10092`" in warning.detail
    assert not list(skew_warnings(judge_skew(inventory(), all_facts())))


@pytest.mark.parametrize(("node", "program"), [("head", "llama-server"), ("w1", "ggml-rpc-server")])
def test_a_node_without_its_program_is_told_that_and_nothing_of_versions(node: str, program: str) -> None:
    text = NODES.replace(f"name: {node},", f"name: {node}, llama: {{bin_dir: /opt/nowhere, build: b10092}},")
    bare = facts(node, programs=[], version="", commits=[])
    evidence = [
        item for item in judge_skew(inventory(text), all_facts(**{node: bare})).evidence if item.node == node
    ]
    [problem] = [
        p for p in judge_node(inventory(text), None, inventory(text).node(node), bare) if "no " in p.message
    ]
    assert [(item.verdict, item.reason, item.fix) for item in evidence] == [
        ("unknown", problem.message, problem.hint)
    ]
    assert program in problem.message
    assert "/opt/nowhere" in problem.message


def test_a_worker_of_another_commit_is_a_mismatch_that_names_it() -> None:
    other = facts("w2", version=OTHER_VERSION, commits=[OTHER_COMMIT])
    report = judge_skew(inventory(), all_facts(w2=other))
    assert report.status == "mismatch"
    assert verdicts(report) == {("w1", "files"): "match", ("w2", "files"): "mismatch"}
    assert [group.nodes for group in report.groups] == [("w1", "head"), ("w2",)]
    error = skew_error(report)
    assert isinstance(error, BuildSkew)
    assert (error.node, error.exit_code) == ("w2", 4)
    assert OTHER_COMMIT in error.message
    assert error.hint == "`clusterctl install --build b10092` puts that build on every node"


def test_every_node_that_differs_is_named() -> None:
    others = {name: facts(name, commits=[OTHER_COMMIT]) for name in ("w1", "w2")}
    error = skew_error(judge_skew(inventory(), all_facts(**others)))
    assert isinstance(error, NodesFailed)
    assert [each.node for each in error.errors] == ["w1", "w2"]
    assert error.exit_code == 4


def test_the_library_of_the_worker_counts_and_not_the_server_beside_it() -> None:
    stale = facts("w1", version=VERSION, commits=[OTHER_COMMIT])
    assert judge_skew(inventory(), all_facts(w1=stale)).status == "mismatch"


def test_a_library_that_names_nothing_leaves_the_word_to_the_server_beside_it() -> None:
    silent = facts("w1", commits=[])
    report = judge_skew(inventory(), all_facts(w1=silent))
    assert report.status == "match"
    assert "llama-server beside the worker" in report.evidence[0].reason


def test_a_server_in_another_directory_does_not_speak_for_the_worker() -> None:
    elsewhere = facts(
        "w1",
        commits=[],
        programs=("ggml-rpc-server",),
        changes={"program:/usr/bin/llama-server": "1 1\n1780000000"},
    )
    assert judge_skew(inventory(), all_facts(w1=elsewhere)).status == "unknown"


def test_links_in_one_directory_that_lead_to_two_do_not_speak_for_each_other() -> None:
    linked = {
        "program:/usr/local/bin/llama-server": "1-1\n/opt/new/llama-server",
        "program:/usr/local/bin/ggml-rpc-server": "1-1\n/opt/old/ggml-rpc-server",
    }
    assert judge_skew(inventory(), all_facts(w1=facts("w1", commits=[], programs=(), changes=linked))).status == (
        "unknown"
    )


def test_a_head_with_changes_of_its_own_is_unknown() -> None:
    report = judge_skew(inventory(), all_facts(head=facts("head", commits=["3ce7da2-dirty"])))
    assert verdicts(report)["head", "libraries"] == "unknown"
    assert report.status == "unknown"


def test_a_number_proves_nothing_where_only_one_side_names_its_commit() -> None:
    archive = "version: 10092 (unknown)\n"
    head = facts("head", version=archive, commits=[])
    named = facts("w1", version=archive, commits=[OTHER_COMMIT])
    silent = facts("w2", version=archive, commits=[])
    report = judge_skew(inventory(), all_facts(head=head, w1=named, w2=silent))
    assert verdicts(report) == {("w1", "files"): "unknown", ("w2", "files"): "match"}
    assert OTHER_COMMIT in report.evidence[0].reason


def test_where_no_program_tells_a_commit_their_libraries_do() -> None:
    archive = "version: 10092 (unknown)\n"
    nodes = {name: facts(name, version=archive) for name in ("w1", "w2", "head")}
    assert judge_skew(inventory(), nodes).status == "match"
    other = facts("w1", version=archive, commits=[OTHER_COMMIT])
    assert judge_skew(inventory(), {**nodes, "w1": other}).status == "mismatch"


def test_a_worker_of_the_same_number_but_other_source_is_told_so() -> None:
    fork = facts("w1", version=f"version: 10092 ({OTHER_COMMIT})\n", commits=[OTHER_COMMIT])
    report = judge_skew(inventory(), all_facts(w1=fork))
    assert verdicts(report)["w1", "files"] == "same-tag-other-source"
    assert report.status == "mismatch"


def test_a_group_is_named_after_what_its_workers_run_and_not_after_the_server_beside_them() -> None:
    stale = facts("w1", version=VERSION, commits=[OTHER_COMMIT])
    groups = judge_skew(inventory(), all_facts(w1=stale)).groups
    assert [(group.build, group.nodes) for group in groups] == [
        (f"commit {OTHER_COMMIT}", ("w1",)),
        ("b10092 (3ce7da2)", ("w2", "head")),
    ]


def test_a_pin_is_not_judged_by_a_server_that_lies_elsewhere() -> None:
    other = {"program:/usr/bin/llama-server": "1-1\n/usr/bin/llama-server"}
    worker = facts("w1", version=OTHER_VERSION, programs=("ggml-rpc-server",), changes=other)
    assert verdicts(judge_skew(pinned("b10092"), all_facts(w1=worker)))["w1", "pin"] == "match"


def test_a_library_with_changes_of_its_own_is_unknown() -> None:
    dirty = facts("w1", commits=["3ce7da2-dirty"])
    assert judge_skew(inventory(), all_facts(w1=dirty)).status == "unknown"


def test_a_worker_that_tells_nothing_is_unknown() -> None:
    silent = facts("w1", version="", commits=[], programs=("ggml-rpc-server",))
    report = judge_skew(inventory(), all_facts(w1=silent))
    assert report.status == "unknown"
    assert isinstance(skew_error(report), BuildSkew)


def test_a_node_without_a_worker_program_is_unknown() -> None:
    without = facts("w1", programs=("llama-server",))
    assert judge_skew(inventory(), all_facts(w1=without)).status == "unknown"


def test_a_node_that_was_not_reached_is_unknown() -> None:
    report = judge_skew(inventory(), {name: own for name, own in all_facts().items() if name != "w2"})
    assert report.status == "unknown"
    assert ("w2", "files") in verdicts(report)
    assert report.groups[1].nodes == ("w2",)


def test_without_the_heads_build_there_is_nothing_to_compare_with() -> None:
    report = judge_skew(inventory(), all_facts(head=facts("head", version="")))
    assert report.status == "unknown"
    assert {node for node, _ in verdicts(report)} == {"w1", "w2", "head"}


def test_a_head_alone_needs_no_partner_but_must_tell_its_build() -> None:
    assert judge_skew(inventory(ALONE), {"head": facts("head")}).status == "match"
    assert judge_skew(inventory(ALONE), {"head": facts("head", version="")}).status == "unknown"
    assert judge_skew(inventory(ALONE), {}).status == "unknown"


def test_a_head_whose_libraries_are_of_another_build_is_not_of_one_piece() -> None:
    mixed = facts("head", commits=[OTHER_COMMIT])
    report = judge_skew(inventory(), all_facts(head=mixed))
    assert report.status == "mismatch"
    assert verdicts(report)["head", "libraries"] == "mismatch"


@pytest.mark.parametrize(
    ("pin", "status"), [("b10092", "match"), ("3ce7da2", "match"), ("b10434", "mismatch"), ("0.6.0", "unknown")]
)
def test_a_pin_must_hold_on_every_node(pin: str, status: str) -> None:
    assert judge_skew(pinned(pin), all_facts()).status == status


def test_a_pin_that_cannot_be_checked_is_unknown() -> None:
    silent = facts("w1", version="")
    report = judge_skew(pinned("b10092"), all_facts(w1=silent))
    assert verdicts(report)["w1", "pin"] == "unknown"
    assert report.status == "unknown"


@pytest.mark.parametrize(("pin", "verdict"), [("b10092", "match"), ("3ce7da2", "match"), ("b10434", "unknown")])
def test_a_worker_program_alone_is_what_is_pinned_if_the_head_is_and_their_commits_agree(
    pin: str, verdict: str
) -> None:
    alone = facts("w1", version="", programs=("ggml-rpc-server",))
    assert verdicts(judge_skew(pinned(pin), all_facts(w1=alone)))["w1", "pin"] == verdict
    other = facts("w1", version="", commits=[OTHER_COMMIT], programs=("ggml-rpc-server",))
    assert verdicts(judge_skew(pinned(pin), all_facts(w1=other)))["w1", "pin"] != "match"


def test_a_running_worker_whose_files_were_replaced_is_a_mismatch() -> None:
    record = Record(
        "demo", "w1", Role.WORKER, ("/opt/llama/ggml-rpc-server",), "10.10.0.21", 50052, "b1", "me", "", ""
    )
    running = facts("w1", changes={"record:w1": f"running\n77\n\nchanged\n{record.to_json()}"})
    report = judge_skew(inventory(), all_facts(w1=running))
    assert verdicts(report)["w1", "running process"] == "mismatch"
    unsure = facts("w1", changes={"record:w1": f"unsure\n77\n\nchanged\n{record.to_json()}"})
    assert verdicts(judge_skew(inventory(), all_facts(w1=unsure)))["w1", "running process"] == "mismatch"
    same = facts("w1", changes={"record:w1": f"running\n77\n\nsame\n{record.to_json()}"})
    assert judge_skew(inventory(), all_facts(w1=same)).status == "match"


def test_a_running_worker_that_speaks_another_protocol_is_a_mismatch() -> None:
    report = judge_skew(inventory(), all_facts(), {"w1": RpcProtocol(4, 0, 1), "w2": RpcProtocol(4, 0, 3)})
    assert ("w1", "protocol") in verdicts(report)
    assert ("w2", "protocol") not in verdicts(report)
    assert report.status == "mismatch"


def test_a_worker_without_a_server_states_the_one_commit_of_its_library() -> None:
    alone = facts("w1", version="", programs=("ggml-rpc-server",))
    assert stated_build(alone) == Build(commit="3ce7da2")
    two = facts("w1", version="", commits=["3ce7da2", OTHER_COMMIT], programs=("ggml-rpc-server",))
    assert stated_build(two) is None
    assert stated_build(None) is None
