"""Inventories and facts for tests of the cluster's pure parts, made from the texts that nodes really send."""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TypedDict, Unpack

from clusterctl.cluster.facts import NodeFacts, parse_facts
from clusterctl.config.inventory import Inventory
from clusterctl.config.loading import parse_inventory, parse_recipe
from clusterctl.config.recipe import Recipe
from clusterctl.llama.model_header import ModelHeader
from clusterctl.model import Role
from clusterctl.remote.answer import Answer, Section
from tests.unit.synthetic import even_header

HELP = Path(__file__).parents[1] / "data" / "help"
COMMIT = "3ce7da2"
VERSION = f"version: 10092 ({COMMIT})\nbuilt with GNU 12.2.0 for Linux x86_64\n"
PROGRAMS = ("llama-server", "ggml-rpc-server")
CUDA = "CUDA0: NVIDIA GeForce RTX 3090 (24154 MiB, 23210 MiB free)"

NODES = """
version: 1
cluster: demo
network: 10.10.0.0/24
nodes:
  - {name: w1, role: worker}
  - {name: w2, role: worker}
  - {name: head, role: head}
"""
RECIPE = """
version: 1
name: demo
model: {path: /models/demo.gguf}
context: 4096
"""

SYSTEM = "Linux {host} x86_64\nops\n{boot}\n1790000000\n/home/ops\n/usr/bin:/bin\n"
SOCKETS = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
MEMORY = "MemTotal:       65536000 kB\nMemFree:         1000000 kB\nMemAvailable:   60000000 kB\n"
ADDRESSES = {"w1": "10.10.0.21", "w2": "10.10.0.22", "head": "10.10.0.1"}


def inventory(text: str = NODES) -> Inventory:
    return parse_inventory(text, "test.yaml", {})


def recipe(text: str = RECIPE) -> Recipe:
    return parse_recipe(text, "test.yaml", {})


def header() -> ModelHeader:
    return even_header(n_layer=16, layer_mib=100)


@cache
def help_text(program: str, build: str) -> str:
    """The `--help` of a real build."""
    return gzip.decompress((HELP / f"{program}.{build}.txt.gz").read_bytes()).decode()


def listing(*rows: str) -> str:
    """What `--list-devices` prints."""
    return "Available devices:\n" + "".join(f"  {row}\n" for row in rows)


def address_row(address: str, interface: str = "eth0") -> str:
    return (
        f"2: {interface}    inet {address}/24 brd 10.10.0.255 scope global {interface}\\       valid_lft forever\n"
    )


def kernel_listener(port: int, address: str = "00000000") -> str:
    """The row of a listening socket in /proc/net/tcp."""
    return f"   0: {address}:{port:04X} 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1\n"


class Changes(TypedDict, total=False):
    """What may differ from a healthy node; `changes` are whole sections by name."""

    version: str
    commits: Sequence[str]
    devices: str
    addresses: str
    programs: Sequence[str]
    build: str
    boot: str
    sockets: str
    files: str
    changes: Mapping[str, str]


def sections(node: str, role: Role, **given: Unpack[Changes]) -> Answer:
    """The sections of a healthy node's answer to the probe, with some of them changed."""
    own = "" if role is Role.HEAD else "worker_"
    program, option = ("llama-server", "help") if role is Role.HEAD else ("ggml-rpc-server", "worker_help")
    texts = {
        "system": SYSTEM.format(host=node, boot=given.get("boot", f"boot-of-{node}")),
        "memory": MEMORY,
        "addresses": given.get("addresses", address_row(ADDRESSES.get(node, "10.10.0.99"))),
        "interfaces": "eth0 up 1 1000 e1000e - -\n",
        "sockets": SOCKETS + given.get("sockets", ""),
        "cache": "0\nFilesystem 1024-blocks Used Available Capacity Mounted on\n/dev/a 9999 9 900000000 2% /\n",
        "files": given.get("files", ""),
        **{
            f"program:/opt/llama/{name}": f"12345-67\n/opt/llama/{name}"
            for name in given.get("programs", PROGRAMS)
        },
        "version": given.get("version", VERSION),
        f"{own}devices": given.get("devices", listing(CUDA)),
        f"{own}libraries": "\tlibggml-base.so => /opt/llama/libggml-base.so (0x1)\n",
        f"{own}commits": "\n".join(given.get("commits", (COMMIT,))),
        option: help_text(program, given.get("build", "b10092")),
        **given.get("changes", {}),
    }
    answer = Answer(node)
    answer.update({name: Section(0, text) for name, text in texts.items()})
    return answer


def facts(
    node: str, role: Role | None = None, *, asked_files: Sequence[str] = (), **given: Unpack[Changes]
) -> NodeFacts:
    """The facts of a healthy node, with some things changed."""
    role = role or (Role.HEAD if node == "head" else Role.WORKER)
    return parse_facts(node, role, asked_files, sections(node, role, **given))


def all_facts(**of_node: NodeFacts) -> dict[str, NodeFacts]:
    """Facts of the three nodes of `NODES`, all healthy but for those that are given."""
    return {name: of_node.get(name) or facts(name) for name in ("w1", "w2", "head")}
