"""Decodes with every fourth split of a model over two unequal workers, and with the splits that were planned.

    python -m benchmarks.split_speed

Needs what the lab tests need: root on Linux, sshd, iproute2, control groups. One worker may use a whole processor,
the other a twentieth, each with one thread; first both may take the whole model, then the fast one only a part.
`strategy: speed` goes by memory bandwidth, which no processor in a control group has on a data sheet: it is
derived from a short run on each worker alone, and stands in the inventory. All runs of a table are made in turns,
and of each the best counts: whatever else the machine does can only make it slower.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from tests.lab.inspection import Listener
from tests.lab.lab import Lab, NodeSpec
from tests.lab.operator import HTTP_PORT, Operator, operator_of

PROCESSORS = {"slow": 0.05, "fast": 1.0}
LIMIT_MIB = 140
ROUNDS = 3
STEP = 4
TOKENS = 48
START_S = 90
GB = 1e9

TRIED = "tried"

Command = dict[str, Any]


@dataclass
class Run:
    """A split that is tried: what it is called, the head's arguments, and the tokens per second so far."""

    name: str
    argv: list[str]
    is_allowed: bool = True
    tok_s: list[float] = field(default_factory=list)

    @property
    def slots(self) -> str:
        """The split as llama.cpp gets it."""
        return value_of(self.argv, "--tensor-split") if "--tensor-split" in self.argv else "-"

    @property
    def best(self) -> float:
        """The run that was disturbed least."""
        return max(self.tok_s)


class Bench:
    """A lab whose workers run, and an operator who plans from what was recorded before they did."""

    def __init__(self, lab: Lab, operator: Operator) -> None:
        self.lab = lab
        self.operator = operator
        self.facts = operator.folder / "facts.json"
        self.facts.write_text(operator.succeed("check", "--json").stdout)

    def plan(self, **split: object) -> dict[str, Any] | None:
        """The document of a plan; `None` if it does not fit."""
        done = self.operator.with_recipe(split=split).run("plan", "--facts", str(self.facts), "--json")
        if done.exit_code not in (0, 5):
            raise SystemExit(done.stderr)
        return done.document if done.exit_code == 0 else None

    def by_hand(self, slow_slots: int) -> dict[str, Any] | None:
        """The plan that gives the slow worker, which comes first, so many slots; the last one is the output."""
        n_layer = self.required(strategy="memory")["n_layer"]
        slow = min(slow_slots, n_layer)
        layers = {name: count for name, count in (("slow", slow), ("fast", n_layer - slow)) if count}
        return self.plan(strategy="manual", layers=layers)

    def required(self, **split: object) -> dict[str, Any]:
        """The document of a plan that must fit."""
        document = self.plan(**split)
        assert document is not None, split
        return document

    def start(self, command: Command) -> None:
        """Start the program of a node, detached."""
        words = " ".join(f"'{word}'" for word in command["argv"])
        self.lab.ssh(command["node"], f"{words} >~/log 2>&1 </dev/null & echo $! >~/pid")

    def measure(self, argv: Sequence[str]) -> float:
        """Tokens per second of a head with these arguments, after a warm-up."""
        self.start({"node": "head", "argv": argv})
        try:
            until(self.serves)
            self.ask(8)
            return self.ask(TOKENS)
        finally:
            self.lab.ssh("head", "kill $(cat ~/pid)")
            until(lambda: Listener("127.0.0.1", HTTP_PORT) not in self.lab.nodes["head"].listeners())

    def serves(self) -> bool:
        with self.lab.nodes["head"].network():
            try:
                return httpx.get(f"http://127.0.0.1:{HTTP_PORT}/health").status_code == 200
            except httpx.TransportError:
                return False

    def ask(self, tokens: int) -> float:
        question = {"prompt": "Once upon a time", "n_predict": tokens, "ignore_eos": True, "cache_prompt": False}
        with self.lab.nodes["head"].network():
            answer = httpx.post(f"http://127.0.0.1:{HTTP_PORT}/completion", json=question, timeout=120)
        return float(answer.json()["timings"]["predicted_per_second"])


def main() -> None:
    specs = [NodeSpec("head", models=True), *map(NodeSpec, PROCESSORS)]
    with Lab(specs) as lab, tempfile.TemporaryDirectory() as folder:
        operator = operator_of(lab, Path(folder), workers=list(PROCESSORS))
        bench = Bench(lab, operator)
        for name, fraction in PROCESSORS.items():
            lab.nodes[name].limit_cpu(fraction)
        document = bench.required(strategy="memory")
        for command in document["commands"]:
            if command["role"] == "worker":
                bench.start(command)
        for name, gb_s in bandwidths(bench).items():
            print(f"{name}: {PROCESSORS[name]:g} processor, {gb_s:.1f} GB/s derived from a run alone")
            bench.operator = bench.operator.with_node(name, speed={"bandwidth_gb_s": gb_s})
        compare(bench, "both may take all")
        bench.operator = bench.operator.with_node("fast", memory={"limit_mib": LIMIT_MIB})
        compare(bench, f"the fast one may take {LIMIT_MIB} MiB")


def bandwidths(bench: Bench) -> dict[str, float]:
    """What each worker alone reads of the model in the time of a token, in GB/s."""
    figures = {}
    for name in PROCESSORS:
        document = bench.required(strategy="manual", layers={name: bench.required(strategy="memory")["n_layer"]})
        tok_s = max(bench.measure(head_of(document)) for _ in range(ROUNDS))
        read_bytes = sum(device["model_mib"] for device in document["devices"]) * 1024**2
        figures[name] = round(tok_s * read_bytes / GB, 2)
    return figures


def compare(bench: Bench, title: str) -> None:
    runs = merged(planned(bench))
    for _ in range(ROUNDS):
        for run in runs:
            run.tok_s.append(bench.measure(run.argv))
    best = max(run.best for run in runs if run.is_allowed)
    print(f"\n{title}\n{'split':<22} {'slow,fast':>9} {'tok/s':>7} {'of best':>7}   runs")
    for run in runs:
        mark = "" if run.is_allowed else "   takes more than it may"
        figures = " ".join(f"{tok_s:.1f}" for tok_s in run.tok_s)
        print(f"{run.name:<22} {run.slots:>9} {run.best:>7.1f} {run.best / best:>7.0%}   {figures}{mark}")


def merged(runs: Iterable[Run]) -> list[Run]:
    """Runs of the same split made one."""
    found: dict[tuple[str, ...], Run] = {}
    for run in runs:
        same = found.setdefault(tuple(run.argv), run)
        if same is not run and run.name != TRIED:
            same.name += f", {run.name}"
    return list(found.values())


def planned(bench: Bench) -> Iterator[Run]:
    """The two strategies, llama.cpp's own split, and every fourth split that fits."""
    by_memory = head_of(bench.required(strategy="memory"))
    yield Run("speed", head_of(bench.required(strategy="speed")))
    yield Run("memory", by_memory)
    place = by_memory.index("--tensor-split")
    own = [*by_memory[:place], *by_memory[place + 2 :]]
    # Without a split, devices with equal free memory get equal parts.
    yield Run("llama.cpp's own", own, is_allowed=bench.by_hand(16) is not None)
    slots = bench.required(strategy="memory")["n_layer"] + 1
    for slow in range(0, slots + 1, STEP):
        document = bench.by_hand(slow)
        if document is not None:
            yield Run(TRIED, head_of(document))


def head_of(document: dict[str, Any]) -> list[str]:
    [argv] = [command["argv"] for command in document["commands"] if command["role"] == "head"]
    assert isinstance(argv, list)
    return argv


def value_of(argv: Sequence[str], option: str) -> str:
    return argv[argv.index(option) + 1]


def until(condition: Callable[[], bool]) -> None:
    policy = Retrying(
        retry=retry_if_result(lambda met: not met), wait=wait_fixed(0.05), stop=stop_after_delay(START_S)
    )
    policy(condition)


if __name__ == "__main__":
    os.environ.pop("CLUSTERCTL_INVENTORY", None)
    main()
