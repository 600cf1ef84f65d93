"""The state of a cluster, judged from one look at it: only what is proven to serve is called up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from clusterctl.cluster.node_memory import NodeMemory
from clusterctl.cluster.observation import Vitals
from clusterctl.cluster.sight import Sight
from clusterctl.cluster.status import report_of
from clusterctl.errors import NodeUnreachable
from clusterctl.llama.diagnosis import Diagnosis
from clusterctl.llama.serving import Health
from clusterctl.llama.vendor_tools import CardMemory, ComputeApp
from clusterctl.model import Device, HostMemory
from clusterctl.remote.sockets import Socket
from clusterctl.reports import ProgressReport, StatusReport
from tests.unit.sights import ADDRESSES, PIDS, PORT, WELL, ended, sockets_of, with_node, without_node

SUSPENDED = Vitals("T", 1.0, 512.0)
STUCK = ProgressReport("stuck", "asked for one token: no token within 30 s")
UNREACHABLE = NodeUnreachable("no answer within 10 s", node="left", hint="is the machine on?")


def codes(report: StatusReport) -> list[str]:
    return [problem.code for problem in report.problems]


def messages(report: StatusReport) -> str:
    return "\n".join(problem.message for problem in report.problems)


def test_a_cluster_whose_parts_all_serve_is_up() -> None:
    report = report_of(WELL)
    assert (report.state, report.problems, report.orphans) == ("up", (), ())
    assert (report.head.health, report.head.pid, report.head.resident_mib) == ("ok", PIDS["head"], 512.0)
    assert [(w.node, w.state, w.pid) for w in report.workers] == [
        ("left", "serving", 200),
        ("right", "serving", 300),
    ]
    assert report.workers[0].attached == ("10.0.0.1:40000",)
    assert report.workers[0].listening_on == ("10.0.0.2:50052",)


def test_a_loading_head_is_loading_and_no_progress_is_asked_of_it() -> None:
    report = report_of(replace(WELL, health=Health.LOADING, progress=ProgressReport()))
    assert (report.state, report.problems) == ("loading", ())


def test_nothing_on_record_is_down() -> None:
    nothing = Sight("head", {n: replace(seen, processes={}, membership=None) for n, seen in WELL.seen.items()})
    report = report_of(nothing)
    assert (report.state, report.head.health, report.head.url, report.workers) == ("down", "stopped", None, ())


def test_a_healthy_head_of_which_no_token_comes_is_wedged() -> None:
    report = report_of(replace(WELL, progress=STUCK))
    assert (report.state, codes(report)) == ("wedged", ["wedged"])
    assert "no token within 30 s" in messages(report)


def test_progress_that_cannot_be_told_is_said_and_is_no_reason_to_act() -> None:
    report = report_of(replace(WELL, progress=ProgressReport("unknown", "the head tells nothing of its work")))
    assert (report.state, codes(report)) == ("up", ["no-progress-seen"])


def test_an_idle_head_that_was_not_asked_is_no_problem() -> None:
    assert report_of(replace(WELL, progress=ProgressReport())).problems == ()


@pytest.mark.parametrize("name", ["left", "head"])
def test_a_suspended_program_wedges_the_cluster(name: str) -> None:
    report = report_of(replace(with_node(WELL, name, vitals={name: SUSPENDED}), progress=STUCK))
    assert report.state == "wedged"
    assert codes(report) == ["worker-suspended" if name == "left" else "head-suspended"]
    assert f"kill -CONT {PIDS[name]}" in report.problems[0].hint


def test_a_dead_worker_degrades_and_its_cause_is_told_with_its_node() -> None:
    cause = Diagnosis("killed", "the kernel killed it for want of memory", "use less", "")
    report = report_of(replace(ended(WELL, "left", 137), cause=("left", cause)))
    assert (report.state, codes(report)) == ("degraded", ["worker-stopped"])
    assert "(exit status 137): the kernel killed it" in messages(report)
    assert report.workers[0].state == "stopped"


def test_a_dead_head_is_told_with_the_node_that_is_to_blame() -> None:
    cause = Diagnosis("killed", "the kernel killed it for want of memory", "use less", "")
    dead = replace(ended(ended(WELL, "head", 134), "left", 137), health=None, cause=("left", cause))
    report = report_of(dead)
    assert report.state == "degraded"
    assert codes(report)[0] == "head-stopped"
    assert "the kernel killed it for want of memory (on left)" in report.problems[0].message


def test_a_dead_cluster_is_down_and_still_known() -> None:
    dead = ended(ended(ended(WELL, "head", 143), "left", 143), "right", 143)
    report = report_of(replace(dead, health=None))
    assert (report.state, report.head.url) == ("down", "http://127.0.0.1:8080")
    assert codes(report) == ["head-stopped", "worker-stopped", "worker-stopped"]


def test_a_worker_without_the_head_is_idle_and_the_head_serves_without_it() -> None:
    report = report_of(with_node(WELL, "left", sockets=(Socket(ADDRESSES["left"], PORT),)))
    assert (report.state, codes(report), report.workers[0].state) == ("degraded", ["worker-idle"], "idle")


def test_a_worker_that_another_head_uses_is_foreign() -> None:
    stranger = Socket(ADDRESSES["left"], PORT, "10.0.0.99:40000")
    sight = with_node(WELL, "left", sockets=(Socket(ADDRESSES["left"], PORT), stranger))
    report = report_of(with_node(sight, "head", sockets=sockets_of("head")[1:]))
    assert (report.state, codes(report), report.workers[0].state) == ("degraded", ["worker-foreign"], "foreign")
    assert "10.0.0.99:40000" in messages(report)


def test_a_worker_that_listens_everywhere_is_a_problem() -> None:
    sockets = (Socket("0.0.0.0", PORT), *sockets_of("left")[1:])
    report = report_of(with_node(WELL, "left", sockets=sockets))
    assert (report.state, codes(report)) == ("degraded", ["listening-elsewhere"])


def test_a_node_that_cannot_be_reached_is_no_dead_worker() -> None:
    report = report_of(replace(without_node(WELL, "left"), unreachable={"left": UNREACHABLE}))
    assert (report.state, codes(report)) == ("degraded", ["unreachable"])
    assert report.workers[0].state == "unreachable"


def test_without_the_head_nothing_is_certain() -> None:
    lost = replace(without_node(WELL, "head"), unreachable={"head": UNREACHABLE}, health=None)
    assert report_of(lost).state == "unknown"
    assert report_of(lost).orphans == ()


def test_weights_that_never_reached_a_worker_degrade_the_cluster() -> None:
    weights = {"CPU_Mapped": 10.0, "10.0.0.2:50052": 40.0}
    report = report_of(replace(WELL, weights_mib=weights))
    assert (report.state, codes(report)) == ("degraded", ["worker-without-weights"])
    assert messages(report).startswith("right: ")


def test_a_head_that_computes_alone_is_degraded_though_it_answers() -> None:
    report = report_of(replace(WELL, weights_mib={"CPU_Mapped": 90.0, "CPU_REPACK": 3.0}))
    assert report.state == "degraded"
    assert "head-on-processor" in codes(report)


def test_where_the_weights_are_is_no_problem_if_they_are_where_they_should_be() -> None:
    weights = {"CPU_Mapped": 10.0, "10.0.0.2:50052": 40.0, "10.0.0.3:50052": 40.0}
    assert report_of(replace(WELL, weights_mib=weights)).problems == ()


def test_running_programs_that_no_record_counts_are_orphans() -> None:
    report = report_of(with_node(WELL, "head", membership=None, processes={}, sockets=()))
    assert report.state == "degraded"
    assert [(orphan.name, orphan.node, orphan.pid) for orphan in report.orphans] == [
        ("left", "left", 200),
        ("right", "right", 300),
    ]
    assert "down --force" in next(problem.hint for problem in report.problems if problem.code == "orphan")


def test_a_former_head_still_tells_who_belongs_to_the_cluster() -> None:
    report = report_of(replace(WELL, named_head="left"))
    assert (report.state, report.head.node, report.orphans) == ("up", "head", ())


def test_memory_is_told_by_process_and_by_card() -> None:
    memory = NodeMemory(
        HostMemory(64000, 32000),
        cards=(CardMemory("NVIDIA GeForce RTX 3090", 24576, 4000),),
        apps=(ComputeApp(PIDS["left"], "ggml-rpc-server", 20000), ComputeApp(7, "other", 500)),
    )
    worker = report_of(replace(WELL, memory={"left": memory})).workers[0]
    assert (worker.resident_mib, worker.device_mib) == (512.0, 20000)
    assert worker.device_memory == (Device("NVIDIA GeForce RTX 3090", "", 24576, 4000),)
