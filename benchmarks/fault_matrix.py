"""Lets every fault of tests/lab/faults.py strike a cluster at every moment, and prints what became of it.

    python -m benchmarks.fault_matrix [FAULT...]

Needs what the lab tests need: root on Linux, sshd, iproute2. Takes a quarter of an hour. The seconds are those
of the `recover` that brought the cluster back, from its start until a token had come: for a fault that lasts,
the one after its end. Exits 1 unless every fault was survived and nothing was left.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.lab.faults import FAULTS, Fault, Moment
from tests.lab.lab import Lab, NodeSpec
from tests.lab.operator import Operator, remains
from tests.lab.ordeal import Ordeal, endure, hasty_operator
from tests.lab.test_serving import ask

ROW = "{:<24} {:<11} {:<10} {:<42} {:<34} {:>7}  {}"


@dataclass(frozen=True, slots=True)
class Case:
    """One fault at one moment; `left` is what `down` left on the nodes."""

    fault: Fault
    moment: Moment
    ordeal: Ordeal
    complaints: tuple[str, ...]
    left: str

    @property
    def is_survived(self) -> bool:
        """Whether all was as it should be, and nothing was left."""
        return not self.complaints and not self.left

    @property
    def outcome(self) -> str:
        """What `recover` did, in words."""
        hindered = self.ordeal.hindered
        done = "brought back" if self.ordeal.was_touched else "untouched"
        return f"exit {hindered.exit_code} while it lasted, then {done}" if hindered else done


def main() -> int:
    faults = [fault for fault in FAULTS if not sys.argv[1:] or fault.name in sys.argv[1:]]
    print(ROW.format("fault", "moment", "status", "which names", "recover", "seconds", "after down"))
    with (
        tempfile.TemporaryDirectory() as folder,
        Lab([NodeSpec("head", models=True), NodeSpec("left"), NodeSpec("right")]) as lab,
    ):
        operator = hasty_operator(lab, Path(folder))
        began_s = time.monotonic()
        operator.succeed("up")
        load_s = time.monotonic() - began_s
        text = str(ask(lab)["content"])
        operator.succeed("down")
        cases = [try_out(fault, moment, operator, text) for fault in faults for moment in Moment]
    summarize(cases, load_s)
    return 0 if all(case.is_survived for case in cases) else 1


def try_out(fault: Fault, moment: Moment, operator: Operator, text: str) -> Case:
    with fault.prepared(operator) as prepared:
        ordeal = endure(fault, moment, prepared)
        prepared.run("down", "--purge-cache")
    left = remains(operator.lab)
    case = Case(fault, moment, ordeal, tuple(ordeal.complaints(fault, moment, text)), str(left or ""))
    seconds = f"{ordeal.seconds:.1f}" if ordeal.was_touched else "-"
    names = ", ".join(sorted(ordeal.codes)) or "no problem"
    print(
        ROW.format(fault.name, moment, ordeal.state, names, case.outcome, seconds, case.left or "nothing"),
        flush=True,
    )
    for complaint in case.complaints:
        print(f"  not as it should be: {complaint}")
    return case


def summarize(cases: list[Case], load_s: float) -> None:
    survived = sum(case.is_survived for case in cases)
    seconds = sorted(case.ordeal.seconds for case in cases if case.ordeal.was_touched)
    print(
        f"\nsurvived {survived} of {len(cases)}; something was left after {sum(bool(case.left) for case in cases)}"
    )
    if len(seconds) > 1:
        p50, p95 = statistics.median(seconds), statistics.quantiles(seconds, n=20, method="inclusive")[-1]
        print(f"from fault to serving again: p50 {p50:.1f} s, p95 {p95:.1f} s; `up` by itself {load_s:.1f} s")


if __name__ == "__main__":
    sys.exit(main())
