"""How long a load may take: as long as bytes move, and not longer."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import psutil
import pytest

from tests.lab.conftest import MakeLab
from tests.lab.inspection import NodeProcess
from tests.lab.lab import Lab, NodeSpec
from tests.lab.operator import Operator, operator_of, remains

SLOW_MBIT = 40
STALL_S = 4


@pytest.fixture(scope="module")
def lab(make_lab: MakeLab) -> Lab:
    return make_lab([NodeSpec("head", models=True), NodeSpec("worker")])


@pytest.fixture
def operator(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    """The weights take twenty seconds to the worker."""
    lab.nodes["worker"].limit_link(SLOW_MBIT, ["private"])
    yield operator_of(lab, tmp_path_factory.mktemp("operator"), workers=["worker"])
    lab.nodes["worker"].restore_link(["private"])
    assert remains(lab) == {}


def heads(lab: Lab) -> list[NodeProcess]:
    return [process for process in lab.nodes["head"].processes() if "--model" in process.argv]


def test_a_load_over_a_slow_link_is_given_the_time_it_takes(operator: Operator) -> None:
    began_s = time.monotonic()
    operator.succeed("up", "--stall-timeout", str(STALL_S))
    assert time.monotonic() - began_s > 2 * STALL_S
    operator.succeed("down")


def test_a_load_that_does_not_move_is_given_up_with_its_last_line(lab: Lab, operator: Operator) -> None:
    with operator.running("up", "--stall-timeout", str(STALL_S)) as bringing_up:
        bringing_up.wait_for("start the head")
        head = psutil.Process(heads(lab)[0].machine_pid)
        os.kill(head.pid, signal.SIGSTOP)
        given_up = bringing_up.finish()
    assert given_up.exit_code == 7
    assert f"no progress for {STALL_S} s at: " in given_up.stderr
    assert not head.is_running()


def test_a_load_that_takes_longer_than_allowed_is_given_up(lab: Lab, operator: Operator) -> None:
    given_up = operator.run("up", "--timeout", "2")
    assert given_up.exit_code == 7
    assert "does not serve after 2 s; last log line: " in given_up.stderr
    assert heads(lab) == []
