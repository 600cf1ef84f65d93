"""What `status --watch` costs a serving cluster: decode speed with and without it in turns, and processor time.

    python -m benchmarks.watch_overhead [ROUNDS]

Needs what the lab tests need: root on Linux, sshd, iproute2. The nodes share one processor, and whoever watches
has another: all that a watch makes the nodes do takes its time from llama.cpp, the worst case there is. The
processor time counts sshd and what it starts; it stays true where other work makes the speeds jump.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil

from tests.lab.lab import Lab, NodeSpec
from tests.lab.operator import HTTP_PORT, Operator, operator_of
from tests.lab.test_lab_itself import wait_until

ROUNDS = 12
TOKENS = 450
NODES, OPERATOR = [0], [1]


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    with Lab([NodeSpec("head", models=True), NodeSpec("worker")]) as lab, tempfile.TemporaryDirectory() as folder:
        for node in lab.nodes.values():
            for process in node.processes():
                psutil.Process(process.machine_pid).cpu_affinity(NODES)
        psutil.Process().cpu_affinity(OPERATOR)
        operator = operator_of(lab, Path(folder), workers=["worker"])
        operator.succeed("up")
        speed_of(lab)
        runs = [measure(operator, watched) for _ in range(rounds) for watched in (False, True)]
        operator.succeed("down")
    show([(alone.tok_s, watched.tok_s) for alone, watched in zip(runs[::2], runs[1::2], strict=True)])
    share = sum(run.nodes_s for run in runs[1::2]) / sum(run.elapsed_s for run in runs[1::2]) * 100
    print(f"processor time of both nodes while watched: {share:.2f} % of one processor")


@dataclass(frozen=True, slots=True)
class Run:
    """One answer: its speed, how long the watch stood, and the processor seconds that sshd spent meanwhile."""

    tok_s: float
    elapsed_s: float
    nodes_s: float


def measure(operator: Operator, watched: bool) -> Run:
    before_s, began_s = sshd_seconds(operator.lab), time.monotonic()
    with operator.running("status", "--watch") if watched else nullcontext() as watch:
        if watch is not None:
            wait_until(lambda: "up" in watch.printed)
            # Connecting is done once; it is no part of watching.
            before_s, began_s = sshd_seconds(operator.lab), time.monotonic()
        tok_s = speed_of(operator.lab)
        elapsed_s = time.monotonic() - began_s
    return Run(tok_s, elapsed_s, sshd_seconds(operator.lab) - before_s)


def sshd_seconds(lab: Lab) -> float:
    """What sshd and all that it has started and seen ending has used so far."""
    seconds = 0.0
    for node in lab.nodes.values():
        for process in node.processes():
            if "sshd" in process.argv[0]:
                seconds += sum(psutil.Process(process.machine_pid).cpu_times()[:4])
    return seconds


def show(pairs: Sequence[tuple[float, float]]) -> None:
    for name, speeds in zip(("alone", "watched"), zip(*pairs, strict=True), strict=True):
        print(f"{name:<8} median {statistics.median(speeds):6.2f} tok/s   {min(speeds):.1f} to {max(speeds):.1f}")
    losses = [(1 - watched / alone) * 100 for alone, watched in pairs]
    print(f"loss     median {statistics.median(losses):6.2f} %       of {len(pairs)} pairs, one after the other")


def speed_of(lab: Lab) -> float:
    """The head's own account of one answer, in tokens per second."""
    request = {"prompt": "Once upon a time", "n_predict": TOKENS, "ignore_eos": True, "temperature": 0}
    with lab.nodes["head"].network():
        answer = httpx.post(f"http://127.0.0.1:{HTTP_PORT}/completion", json=request, timeout=300)
    return float(answer.json()["timings"]["predicted_per_second"])


if __name__ == "__main__":
    main()
