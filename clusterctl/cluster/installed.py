"""Where `clusterctl install` puts builds, and how it brings a node that is out of line to the right one. Pure."""

from __future__ import annotations

from clusterctl.config.inventory import Inventory, Node
from clusterctl.llama.build_pin import parse_pin, satisfies_pin
from clusterctl.llama.sameness import Sameness, build_name
from clusterctl.model import Build

# Below the home of the SSH user, so that no rights are needed. probe.sh looks at `current` first.
ROOT = "~/.local/share/clusterctl/llama.cpp"


def uses_installed(node: Node) -> bool:
    """Whether a node uses what `install` puts there: always, unless its `bin_dir` leads elsewhere."""
    bin_dir = node.llama.bin_dir
    return not bin_dir or bin_dir.rstrip("/").endswith(f"{ROOT.removeprefix('~')}/current")


def aligning_step(inventory: Inventory, node: Node, head: Build | None) -> str:
    """Say how a node gets the build it should have: what is pinned, else the head's own, `head`.

    A release is installed by its tag; what has only a commit or a version must be at hand as source. Where some
    node's `bin_dir` leads elsewhere, `install` would refuse. A build that is not known is never named.
    """
    wanted = _wanted(inventory, node, head)
    host = node.host if node.connection == "ssh" else "this machine"
    where = f"into {node.llama.bin_dir} on {host}" if node.llama.bin_dir else f"on {host}"
    if wanted is None:
        return f"put llama.cpp of a build that tells its version {where}"
    if not all(map(uses_installed, inventory.nodes)):
        return f"put llama.cpp {build_name(wanted)} {where}"
    if wanted.tag:
        return f"`clusterctl install --build {wanted.tag}` puts that build on every node"
    name = wanted.commit or wanted.version
    return f"`clusterctl install --build {name} --from source FILE` puts it on every node; FILE is its source"


def _wanted(inventory: Inventory, node: Node, head: Build | None) -> Build | None:
    pin = node.llama.build or inventory.head.llama.build
    if pin is None or (head and satisfies_pin(head, pin).verdict is Sameness.MATCH):
        return head
    return parse_pin(pin)
