"""Compares `clusterctl check` of 16 nodes with the same questions asked by OpenSSH, 16 at once.

    python -m benchmarks.check_time

Needs what the lab tests need: root on Linux, sshd, iproute2. Prints the median of 5 runs of each, whole processes.
The first check of a build asks every program for its options too, as the questions by hand do; later ones know.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.lab.lab import Lab, NodeSpec

NODES = 16
RUNS = 5
PROGRAM = "/opt/llama.cpp/bin/llama-server"
QUESTIONS = f"{PROGRAM} --version; {PROGRAM} --list-devices; {PROGRAM} --help"


def main() -> None:
    names = [f"n{number:02}" for number in range(NODES)]
    with Lab([NodeSpec(name) for name in names]) as lab:
        inventory = write_inventory(lab, names)
        check = [str(Path(sys.executable).with_name("clusterctl")), "-i", str(inventory), "check"]
        config = lab.ssh_home / ".ssh" / "config"
        by_hand = ["xargs", "-P16", "-I{}", "ssh", "-F", str(config), "{}", QUESTIONS]
        stdin = "\n".join(names)
        figures: dict[str, list[float]] = {"clusterctl check": [], "the first of a build": [], "xargs ssh": []}
        for run in range(RUNS):
            first = {**lab.environment, "XDG_CACHE_HOME": str(lab.ssh_home / f"cache-{run}")}
            figures["xargs ssh"].append(seconds(by_hand, lab.environment, stdin))
            figures["the first of a build"].append(seconds(check, first, ""))
            figures["clusterctl check"].append(seconds(check, first, ""))
    for name, times in figures.items():
        print(f"{name:<20} median {statistics.median(times):.2f} s   runs {' '.join(f'{t:.2f}' for t in times)}")


def write_inventory(lab: Lab, names: Sequence[str]) -> Path:
    rows = [
        f"  - {{name: {name}, role: {'head' if name == names[0] else 'worker'}, backend: cpu}}" for name in names
    ]
    network = ".".join(lab.nodes[names[0]].private_address.split(".")[:3]) + ".0/24"
    path = lab.ssh_home / "sixteen.yaml"
    path.write_text(
        f"version: 1\ncluster: sixteen\nnetwork: {network}\n"
        "defaults: {llama: {bin_dir: /opt/llama.cpp/bin}}\nnodes:\n" + "\n".join(rows) + "\n"
    )
    return path


def seconds(argv: Sequence[str], environment: Mapping[str, str], stdin: str) -> float:
    began = time.perf_counter()
    done = subprocess.run(argv, env=dict(environment), input=stdin, capture_output=True, text=True, check=False)
    elapsed = time.perf_counter() - began
    if done.returncode != 0:
        raise SystemExit(f"{argv[0]} ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return elapsed


if __name__ == "__main__":
    os.environ.pop("CLUSTERCTL_INVENTORY", None)
    main()
