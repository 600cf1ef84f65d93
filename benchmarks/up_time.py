"""Compares `clusterctl up` with the same steps in a shell script, and `--help` with importing click.

    python -m benchmarks.up_time

Needs what the lab tests need: root on Linux, sshd, iproute2. Prints the median of 5 runs of each, whole processes,
for a head and two workers on three hosts that serve SmolLM2. By hand there are two scripts: one that only starts
programs and waits for a token, and one that first asks every node for build and devices and in the end for the
probabilities of the texts that tell sense from garbage, as `clusterctl up` does.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.check_time import seconds
from clusterctl.llama.sense import questions
from tests.lab.lab import Lab, NodeSpec

RUNS = 5
CLUSTERCTL = str(Path(sys.executable).with_name("clusterctl"))

BIN = "/opt/llama.cpp/bin"
LOOK = """\
for host in head w1 w2; do
    ssh -F "$config" "$host" "for ask in version list-devices help; do $bin/llama-server --\\$ask; done" \
        >"$HOME/$host.txt" 2>&1 &
done
wait
"""
START = """\
for worker in w1 w2; do
    address=$(eval echo \\$$worker)
    ssh -F "$config" "$worker" "nohup $bin/ggml-rpc-server -H $address -p 50052 -d CPU >w.log 2>&1 </dev/null &
        until grep -q ':C384 .* 0A' /proc/net/tcp; do sleep 0.05; done" &
done
wait
ssh -F "$config" head "$bin/llama-server --rpc $w1:50052,$w2:50052 --list-devices >/dev/null
    nohup $bin/llama-server --rpc $w1:50052,$w2:50052 --device RPC0,RPC1 -ts 16,15 -ngl 99 \\
        -m $model -c 2048 -np 1 --fit off --host 127.0.0.1 --port 8080 >h.log 2>&1 </dev/null &
    until curl -sf http://127.0.0.1:8080/health >/dev/null; do sleep 0.1; done
    curl -sf http://127.0.0.1:8080/completion -d '{\\"prompt\\": \\"Hello\\", \\"n_predict\\": 1}' >/dev/null"
"""
# As many tokens with their probabilities as clusterctl asks for, after each of the three texts of sense.yaml.
ASK = """\
for given in "$first" "$second" "$third"; do
    printf '{"prompt": %s, "n_predict": 13, "n_probs": 20, "temperature": 0, "cache_prompt": false}' "$given" |
        ssh -F "$config" head 'curl -sf http://127.0.0.1:8080/completion -d @-' >/dev/null
done
"""
STOP_BY_HAND = (
    'for host in head w1 w2; do ssh -F "$config" "$host" "pkill llama-server; pkill ggml-rpc-server; true"; done'
)


def main() -> None:
    figures = {
        "python -c 'import click'": median(lambda: seconds([sys.executable, "-c", "import click"], {}, "")),
        "clusterctl --help": median(lambda: seconds([CLUSTERCTL, "--help"], {"LC_ALL": "C.UTF-8"}, "")),
    }
    with Lab([NodeSpec("head", models=True), NodeSpec("w1"), NodeSpec("w2")]) as lab:
        figures["by hand, start and wait"] = median(lambda: by_hand(lab, START))
        figures["by hand, look and ask too"] = median(lambda: by_hand(lab, LOOK + START + ASK))
        figures["clusterctl up"] = median(lambda: by_clusterctl(lab))
    for name, figure in figures.items():
        print(f"{name:<26} median {figure:.2f} s")


def median(measure: Callable[[], float]) -> float:
    return statistics.median(measure() for _ in range(RUNS))


def by_hand(lab: Lab, script: str) -> float:
    first, second, third = (json.dumps(passage.given) for passage in questions().passages)
    environment = {
        **lab.environment,
        "config": str(lab.ssh_home / ".ssh" / "config"),
        "model": lab.model_path,
        "bin": BIN,
        "first": first,
        "second": second,
        "third": third,
        **{name: lab.nodes[name].private_address for name in ("w1", "w2")},
    }
    taken = seconds(["sh", "-ec", script], environment, "")
    seconds(["sh", "-c", STOP_BY_HAND], environment, "")
    return taken


def by_clusterctl(lab: Lab) -> float:
    inventory, recipe = lab.ssh_home / "three.yaml", lab.ssh_home / "smollm2.yaml"
    network = lab.nodes["w1"].private_address.rpartition(".")[0] + ".0/24"
    inventory.write_text(
        f"version: 1\ncluster: three\nnetwork: {network}\ndefaults: {{backend: cpu}}\nnodes:\n"
        "  - {name: w1, role: worker}\n  - {name: w2, role: worker}\n"
        "  - {name: head, role: head, serve_only: true}\n"
    )
    recipe.write_text(f"version: 1\nname: smollm2\nmodel: {{path: {lab.model_path}}}\ncontext: 2048\n")
    call = [CLUSTERCTL, "-i", str(inventory), "-r", str(recipe)]
    taken = seconds([*call, "up"], lab.environment, "")
    seconds([*call, "down", "--yes"], lab.environment, "")
    return taken


if __name__ == "__main__":
    main()
