"""Brings a cluster up and down again and again, and looks for what is left after each time.

    python -m benchmarks.cycles [COUNT]

Needs what the lab tests need: root on Linux, sshd, iproute2. 200 times by default, which takes a quarter of an
hour; every other time the cluster is taken down while it still loads. Exits 1 at the first process, port, file
or connection that is left on a node, or file on the machine that commands it.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.lab.lab import Lab, NodeSpec
from tests.lab.operator import Operator, operator_of, remains
from tests.lab.test_lab_itself import wait_until

COUNT = 200
TOLD_EVERY = 20


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else COUNT
    times: dict[str, list[float]] = {"up": [], "up --no-wait": [], "down": []}
    with (
        tempfile.TemporaryDirectory() as folder,
        Lab([NodeSpec("head", models=True), NodeSpec("left"), NodeSpec("right")]) as lab,
    ):
        operator = operator_of(lab, Path(folder), workers=["left", "right"])
        cycle(operator, "up", times)
        files = files_of(lab)
        for number in range(1, count):
            cycle(operator, "up --no-wait" if number % 2 else "up", times)
            if left := left_on(lab, files):
                print(f"left after {number + 1} times: {left}")
                return 1
            if (number + 1) % TOLD_EVERY == 0:
                print(f"{number + 1} times", flush=True)
    print(f"{count} times up and down: no process, port, file or connection was left")
    for name, taken in times.items():
        print(f"{name:<13} median {statistics.median(taken):.2f} s, longest {max(taken):.2f} s")
    return 0


def cycle(operator: Operator, up: str, times: dict[str, list[float]]) -> None:
    for command in (up, "down"):
        began_s = time.monotonic()
        operator.succeed(*command.split())
        times[command].append(time.monotonic() - began_s)


def left_on(lab: Lab, files: Sequence[str]) -> str:
    """What is there now that was not before the first time; empty if nothing."""
    # A node's sshd learns a moment later that its client has gone.
    wait_until(lambda: not any(connections(lab).values()))
    new_files = [file for file in files_of(lab) if file not in files]
    return "; ".join(str(each) for each in (remains(lab), new_files) if each)


def connections(lab: Lab) -> dict[str, str]:
    """Every node's TCP connections."""
    return {name: node.run(["ss", "-Htn", "state", "established"]).stdout for name, node in lab.nodes.items()}


def files_of(lab: Lab) -> list[str]:
    """What lies in the operator's home."""
    return [str(file) for file in lab.ssh_home.rglob("*")]


if __name__ == "__main__":
    sys.exit(main())
