"""What `status --watch` costs a serving cluster: decode speed with and without it, and processor time.

    python -m benchmarks.watch_overhead [PAIRS]

Needs what the lab tests need: root on Linux, sshd, iproute2. The nodes share one processor, and whoever watches
has another: all that a watch makes the nodes do takes its time from llama.cpp, the worst case there is. One
watch stands all the time and is suspended for every other answer, so that each pair of answers meets the same
machine. The processor time, of sshd and all that it starts, stays true where other work makes the speeds jump.
"""

from __future__ import annotations

import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil

from tests.lab.lab import Lab, NodeSpec
from tests.lab.operator import HTTP_PORT, operator_of
from tests.lab.test_lab_itself import wait_until

PAIRS = 30
TOKENS = 450
NODES, OPERATOR = [0], [1]


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer: its speed by the head's own account, its time, and the processor time of sshd meanwhile."""

    tok_s: float
    elapsed_s: float
    sshd_s: float


def main() -> None:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else PAIRS
    with Lab([NodeSpec("head", models=True), NodeSpec("worker")]) as lab, tempfile.TemporaryDirectory() as folder:
        for node in lab.nodes.values():
            for process in node.processes():
                psutil.Process(process.machine_pid).cpu_affinity(NODES)
        psutil.Process().cpu_affinity(OPERATOR)
        operator = operator_of(lab, Path(folder), workers=["worker"])
        operator.succeed("up")
        with operator.running("status", "--watch") as watch:
            wait_until(lambda: "up" in watch.printed)
            measured = [measure_pair(lab, watch.pid, watched_first=bool(number % 2)) for number in range(pairs)]
        operator.succeed("down")
    show(measured)


def measure_pair(lab: Lab, watch_pid: int, *, watched_first: bool) -> tuple[Answer, Answer]:
    """An answer alone and one that is watched, in turns the one or the other first."""
    found = {}
    for watched in (watched_first, not watched_first):
        os.kill(watch_pid, signal.SIGCONT if watched else signal.SIGSTOP)
        found[watched] = measure(lab)
    return found[False], found[True]


def measure(lab: Lab) -> Answer:
    request = {"prompt": "Once upon a time", "n_predict": TOKENS, "ignore_eos": True, "temperature": 0}
    before_s, began_s = sshd_seconds(lab), time.monotonic()
    with lab.nodes["head"].network():
        answer = httpx.post(f"http://127.0.0.1:{HTTP_PORT}/completion", json=request, timeout=300)
    speed = float(answer.json()["timings"]["predicted_per_second"])
    return Answer(speed, time.monotonic() - began_s, sshd_seconds(lab) - before_s)


def sshd_seconds(lab: Lab) -> float:
    """What sshd and all that it has started and seen ending has used so far, on all nodes."""
    seconds = 0.0
    for node in lab.nodes.values():
        for process in node.processes():
            if "sshd" in process.argv[0]:
                seconds += sum(psutil.Process(process.machine_pid).cpu_times()[:4])
    return seconds


def show(pairs: Sequence[tuple[Answer, Answer]]) -> None:
    for name, answers in zip(("alone", "watched"), zip(*pairs, strict=True), strict=True):
        print(f"{name:<8} median {statistics.median(answer.tok_s for answer in answers):6.1f} tok/s")
    low, middle, high = statistics.quantiles([(1 - two.tok_s / one.tok_s) * 100 for one, two in pairs], n=4)
    print(f"loss     median {middle:6.2f} %   half of {len(pairs)} pairs between {low:.1f} and {high:.1f} %")
    watched = [two for _, two in pairs]
    share = sum(answer.sshd_s for answer in watched) / sum(answer.elapsed_s for answer in watched) * 100
    print(f"nodes    {share:.2f} % of one processor, for both together, while watched")


if __name__ == "__main__":
    main()
