"""Every fault: `status` tells it, `recover` brings the cluster back, and `down` leaves nothing.

Each strikes at two of the three moments here, which takes three minutes; `python -m benchmarks.fault_matrix` has
all of them, and prints them as a table.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.lab.conftest import MakeLab
from tests.lab.faults import FAULTS, Fault, Moment
from tests.lab.lab import Lab, NodeSpec
from tests.lab.operator import Operator, remains
from tests.lab.ordeal import endure, hasty_operator
from tests.lab.test_serving import ask

# Each of two workers of pytest-xdist takes half of the faults, on a lab of its own.
ROWS = [
    pytest.param(
        fault,
        [moment for column, moment in enumerate(Moment) if column != row % len(Moment)],
        id=fault.name,
        marks=pytest.mark.xdist_group(f"half{row % 2}"),
    )
    for row, fault in enumerate(FAULTS)
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


@pytest.mark.parametrize(("fault", "moments"), ROWS)
def test_a_fault_is_told_and_mended_whenever_it_strikes(
    operator: Operator, answer: str, fault: Fault, moments: Sequence[Moment]
) -> None:
    with fault.prepared(operator) as prepared:
        try:
            for moment in moments:
                assert endure(fault, moment, prepared).complaints(fault, moment, answer) == [], moment
        finally:
            down = prepared.run("down", "--purge-cache")
    assert down.exit_code == 0, down
    assert remains(operator.lab) == {}
