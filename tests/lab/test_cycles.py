"""A cluster that is brought up and taken down again and again."""

from __future__ import annotations

from pathlib import Path

from tests.lab.conftest import MakeLab
from tests.lab.lab import NodeSpec
from tests.lab.operator import operator_of, remains

CYCLES = 6


def test_cycles_leave_no_process_no_port_and_no_file(make_lab: MakeLab, tmp_path: Path) -> None:
    lab = make_lab([NodeSpec("head", models=True), NodeSpec("worker")])
    operator = operator_of(lab, tmp_path, workers=["worker"])
    for number in range(CYCLES):
        operator.succeed("up", *(["--no-wait"] if number % 2 else []))  # every other one ends while it loads
        operator.succeed("down")
        assert remains(lab) == {}
