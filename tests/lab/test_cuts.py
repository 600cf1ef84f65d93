"""`up`, `down` and `recover` cut short at every step: what comes next sees the truth and finishes the job.

How `up` is interrupted and killed is in test_interruption.py.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator

import pytest

from tests.lab.conftest import MakeLab
from tests.lab.faults import WORKER, kill
from tests.lab.lab import Lab, NodeSpec
from tests.lab.operator import Finished, Operator, Running, operator_of, remains
from tests.lab.ordeal import demand_up, programs
from tests.lab.test_interruption import MOMENTS as UP

DOWN = ("stop the head", "stop the worker", "prove that the worker is gone")
RECOVER = (
    "cause",
    "look at the nodes",
    "stop the head",
    "clear what is left",
    "read the model's header",
    "put the cluster on record",
    "start the workers",
    "verify the workers",
    "start the head",
    "wait until it serves",
)

Cut = Callable[[Operator, Running], Finished]


def terminate(operator: Operator, command: Running) -> Finished:
    return command.interrupt(signal.SIGTERM)


def kill_outright(operator: Operator, command: Running) -> Finished:
    return command.interrupt(signal.SIGKILL)


def hang_up(operator: Operator, command: Running) -> Finished:
    """End every SSH connection; who began a login meanwhile is cut off, too."""
    for node in operator.lab.nodes.values():
        for session in [each.pid for each in node.processes() if each.argv[0].startswith("sshd: ")]:
            if session != 1:
                node.run(["kill", "-KILL", str(session)], check=False)  # one session is two processes
    return command.finish()


EXIT_CODES: dict[Cut, set[int]] = {terminate: {130}, kill_outright: {-signal.SIGKILL}, hang_up: {0, 3, 9}}


@pytest.fixture(scope="module")
def lab(make_lab: MakeLab) -> Lab:
    return make_lab([NodeSpec("head", models=True), NodeSpec("worker")])


@pytest.fixture(scope="module")
def operator(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    operator = operator_of(lab, tmp_path_factory.mktemp("operator"), workers=["worker"])
    yield operator
    operator.succeed("down")
    assert remains(lab) == {}


def cut_short(operator: Operator, command: str, moment: str, cut: Cut) -> Finished:
    """Begin a command and cut it when it has said `moment`; what is there afterwards is what `status` says."""
    with operator.running(command) as running:
        running.wait_for(moment)
        finished = cut(operator, running)
    operator.succeed("unlock")
    seen = operator.status()
    told = {member["node"]: member["pid"] for member in (seen["head"], *seen["workers"], *seen["orphans"])}
    assert {name: {pid} if (pid := told.get(name)) else set() for name in operator.lab.nodes} == programs(operator)
    return finished


@pytest.mark.parametrize("moment", UP)
def test_after_an_up_whose_connections_broke_down_clears_all(lab: Lab, operator: Operator, moment: str) -> None:
    operator.succeed("down")
    lab.nodes["worker"].limit_link(mbit=2, networks=["private"])
    try:
        broken = cut_short(operator, "up", moment, hang_up)
    finally:
        lab.nodes["worker"].restore_link(["private"])
    assert broken.exit_code == 3
    assert "the SSH connection was lost" in broken.stderr
    operator.succeed("down", "--force")
    assert remains(lab) == {}


@pytest.mark.parametrize("cut", EXIT_CODES)
@pytest.mark.parametrize("moment", DOWN)
def test_a_down_that_was_cut_short_is_not_undone_and_is_finished_by_the_next(
    lab: Lab, operator: Operator, moment: str, cut: Cut
) -> None:
    demand_up(operator)
    assert cut_short(operator, "down", moment, cut).exit_code in {0, *EXIT_CODES[cut]}
    assert operator.run("recover").exit_code == 2
    operator.succeed("down")
    assert remains(lab) == {}


def test_a_down_that_has_only_begun_is_told_and_up_starts_anew(lab: Lab, operator: Operator) -> None:
    demand_up(operator)
    cut_short(operator, "down", "stop the head", kill_outright)
    status = operator.status()
    assert status["desired"] == "down"
    assert "down-unfinished" in [problem["code"] for problem in status["problems"]]
    operator.succeed("up")
    assert (operator.status()["state"], operator.status()["desired"]) == ("up", "up")


# At every step two of the three ways, in turn.
CUTS = [
    (moment, cut)
    for row, moment in enumerate(RECOVER)
    for column, cut in enumerate(EXIT_CODES)
    if column != row % 3
]


@pytest.mark.parametrize(("moment", "cut"), CUTS)
def test_a_recovery_that_was_cut_short_is_finished_by_the_next(
    lab: Lab, operator: Operator, moment: str, cut: Cut
) -> None:
    demand_up(operator)
    kill(lab.nodes["worker"], WORKER)
    assert cut_short(operator, "recover", moment, cut).exit_code in EXIT_CODES[cut]
    operator.succeed("recover")
    status = operator.status()
    assert (status["state"], status["desired"]) == ("up", "up")
