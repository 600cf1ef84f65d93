"""The examples at the end of each command's `--help`: what to type, and what comes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

EXAMPLES: Mapping[str, Sequence[tuple[str, str]]] = MappingProxyType(
    {
        "init": (
            ("clusterctl init desk strix1 strix2", "look at three hosts; the best of them becomes the head"),
            ("clusterctl init desk ops@10.0.0.7 --head desk", "with a user, and a head of your choice"),
            ("clusterctl init localhost strix1 --yes --force", "in a script: this machine and a host"),
        ),
        "install": (
            ("clusterctl install --build b11434", "from the releases, what fits each node"),
            ("clusterctl install --build b11434 --from source", "compile it on the nodes"),
            ("clusterctl install --rollback", "back to the build before"),
        ),
        "check": (
            ("clusterctl -i inventory/homelab.yaml check", "can these nodes work together?"),
            ("clusterctl -r qwen3.yaml check --json > facts.json", "record the facts for plan --facts"),
        ),
        "plan": (
            ("clusterctl -r recipes/qwen3.yaml plan", "what up would do"),
            ("clusterctl plan --explain", "and why each device gets what it gets"),
            ("clusterctl plan --facts facts.json", "without a cluster"),
        ),
        "up": (
            ("clusterctl -r recipes/qwen3.yaml up", "until a token has come back"),
            ("clusterctl up --dry-run", "only what would be done"),
            ("clusterctl up --replace", "end what runs, and start the recipe as it is now"),
        ),
        "status": (
            ("clusterctl status", "is it well, and how to ask it"),
            ("clusterctl status --watch", "stay, and see what changes"),
            ("clusterctl status --passive --json", "for monitoring: costs the head nothing"),
        ),
        "connect": (
            ("clusterctl connect", "then ask http://127.0.0.1:8080"),
            ("clusterctl connect --port 9000", "where 8080 is taken here"),
        ),
        "bench": (
            ("clusterctl bench --concurrency 1,2,4", "one client, two, and four"),
            ("clusterctl bench --compare last --compare expect", "beside the last run and what was published"),
            ("clusterctl bench --control --plot bench.svg", "does the cluster pay? with a picture"),
        ),
        "logs": (
            ("clusterctl logs", "the last lines of all nodes, and the likely cause"),
            ("clusterctl logs strix1 -f", "follow one node"),
            ("clusterctl logs --bundle help.tar.gz --mask", "all that a helper needs, without names"),
        ),
        "down": (
            ("clusterctl down", "end the cluster, and prove it"),
            ("clusterctl down --node strix1", "one node only"),
        ),
        "recover": (
            ("clusterctl recover", "once, if it is broken"),
            ("clusterctl recover --watch", "unattended"),
            ("clusterctl recover --bisect", "it answers nonsense: find the worker that spoils it"),
        ),
        "unlock": (("clusterctl unlock", "after a crash, if you can't wait a minute"),),
        "schema": (
            ("clusterctl schema inventory > inventory.json", "for your editor"),
            ("clusterctl schema status", "what status --json prints"),
        ),
        "version": (("clusterctl version --json", "for scripts"),),
    }
)
