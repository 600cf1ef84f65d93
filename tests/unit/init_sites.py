"""Machines as `init` finds them: the text that their probe prints, made from a few words, and read as usual."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from clusterctl.cluster.survey import Site, parse_site
from clusterctl.remote.answer import Section
from clusterctl.remote.target import Destination
from tests.unit.cluster_samples import SOCKETS

HELP = Path(__file__).parents[1] / "data" / "help"
BIN = "/opt/llama.cpp/bin"
ETHERNET = "up 1 1000 igc - -"
FAST_ETHERNET = "up 1 10000 ixgbe - -"
THUNDERBOLT = "unknown 1 - thunderbolt-net - -"
WIFI = "up 1 - iwlwifi wlan -"
WIREGUARD = "unknown 65534 - - wireguard -"
DOCKER = "down 1 -1 - bridge -"
RTX_3090 = "CUDA0: NVIDIA GeForce RTX 3090 (24154 MiB, 23210 MiB free)"
STRIX = "Vulkan0: Radeon 8060S Graphics (RADV GFX1151) (98304 MiB, 98000 MiB free)"
LLVMPIPE = "Vulkan0: llvmpipe (LLVM 15.0.6, 256 bits) (2048 MiB, 2048 MiB free)"
CPU = "CPU: AMD EPYC (24105 MiB, 24105 MiB free)"


@cache
def recorded_help(program: str) -> str:
    return gzip.decompress((HELP / f"{program}.b10434.txt.gz").read_bytes()).decode()


def site(
    name: str,
    addresses: Mapping[str, str] | None = None,
    *,
    links: Mapping[str, str] | None = None,
    cards: tuple[str, ...] = (),
    models: Mapping[str, int] | None = None,
    server: str | None = f"{BIN}/llama-server",
    worker: str | None = f"{BIN}/ggml-rpc-server",
    commit: str = "7e4c0a9",
    help_text: str | None = None,
    destination: Destination | None = None,
    hostname: str | None = None,
    ssh_address: str = "",
) -> Site:
    """A Linux machine: its addresses by interface, those interfaces, its cards as llama.cpp lists them."""
    found = addresses if addresses is not None else {"eth0": f"10.0.0.{sum(name.encode()) % 250 + 1}/24"}
    kinds = links if links is not None else dict.fromkeys(found, ETHERNET)
    rows = [
        f"{at}: {interface}    inet {found[interface]} scope global {interface}"
        for at, interface in enumerate(found)
    ]
    listing = "\n".join(f"  {card}" for card in cards)
    texts = {
        "system": f"Linux {hostname or name} x86_64\nops\nboot-{name}\n0\n/home/ops\n/usr/bin",
        "memory": "",
        "addresses": "\n".join(rows),
        "interfaces": "\n".join(f"{interface} {kind}" for interface, kind in kinds.items()),
        "sockets": SOCKETS,
        "files": "",
        "models": "\n".join(f"{size} 1580601600 {path}" for path, size in (models or {}).items()),
        "ssh": f"10.9.9.9 50000 {ssh_address} 22" if ssh_address else "",
    }
    if server:
        texts |= {
            f"program:{server}": f"1-1\n{server}",
            "version": f"version: 0.1.0-dev (build 1, commit {commit})",
            "help": recorded_help("llama-server") if help_text is None else help_text,
            "devices": f"Available devices:\n{listing or '  (none)'}\n",
            "commits": commit,
        }
    if worker:
        texts |= {
            f"program:{worker}": f"1-1\n{server}",
            "worker_help": recorded_help("ggml-rpc-server"),
            "worker_devices": f"available devices:\n{listing}\n  {CPU}\n",
            "worker_libraries": "",
            "worker_commits": commit,
        }
    sections = {section: Section(0, text) for section, text in texts.items()}
    return parse_site(name, destination or Destination(name), sections)
