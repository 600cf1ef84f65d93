"""Every fault: `status` tells it, `recover` brings the cluster back, and `down` leaves nothing.

`python -m benchmarks.fault_matrix` prints the same as a table.
"""

from __future__ import annotations

import pytest

from tests.lab.conftest import MakeLab
from tests.lab.faults import FAULTS, Fault, Moment
from tests.lab.lab import Lab, NodeSpec
from tests.lab.operator import Operator, remains
from tests.lab.ordeal import endure, hasty_operator
from tests.lab.test_serving import ask

# Each of two workers of pytest-xdist takes half of the faults, on a lab of its own.
ROWS = [
    pytest.param(fault, moment, id=f"{fault.name}, {moment}", marks=pytest.mark.xdist_group(f"half{row % 2}"))
    for row, fault in enumerate(FAULTS)
    for moment in Moment
]


@pytest.fixture(scope="module")
def lab(make_lab: MakeLab) -> Lab:
    return make_lab([NodeSpec("head", models=True), NodeSpec("left"), NodeSpec("right")])


@pytest.fixture(scope="module")
def operator(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Operator:
    return hasty_operator(lab, tmp_path_factory.mktemp("operator"))


@pytest.fixture(scope="module")
def answer(operator: Operator) -> str:
    """What the cluster answers before any fault."""
    operator.succeed("up")
    text = str(ask(operator.lab)["content"])
    operator.succeed("down")
    return text


@pytest.mark.parametrize(("fault", "moment"), ROWS)
def test_a_fault_is_told_and_mended(operator: Operator, answer: str, fault: Fault, moment: Moment) -> None:
    with fault.prepared(operator) as prepared:
        try:
            assert endure(fault, moment, prepared).complaints(fault, moment, answer) == []
        finally:
            down = prepared.run("down", "--purge-cache")
    assert down.exit_code == 0, down
    assert remains(operator.lab) == {}
