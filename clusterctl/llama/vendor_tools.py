"""What the tools of vendors and kernels say of memory: nvidia-smi, /proc/meminfo and vm_stat.

They answer where no program of llama.cpp runs. Machines with unified memory say `[N/A]`, which is unknown and
not zero (NVIDIA GB10; XuehaiPan/nvitop pull request 208).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from clusterctl.llama.text import plain_lines
from clusterctl.model import MIB, HostMemory

_MIB = re.compile(r"([0-9]{1,9})(?: MiB)?")
_COMPUTE_APP = re.compile(
    r"\s*(?P<pid>[0-9]{1,9})(?:,\s*|\s+)(?P<name>\S.*?)(?:,\s*|\s+)(?P<used>\[.*\]|[0-9]+(?: MiB)?)\s*"
)
_MEMINFO = re.compile(r"^(MemTotal|MemAvailable):\s+([0-9]{1,15}) kB$", re.MULTILINE)
_CGROUP = re.compile(r"^CgroupAvailable: ([0-9]{1,19}) kB$", re.MULTILINE)
UNLIMITED_KIB = 2**52
_SYSCTL = re.compile(r"^(hw\.memsize|hw\.pagesize): ([0-9]{1,15})$", re.MULTILINE)
_VM_STAT = re.compile(r"^Pages (free|inactive|speculative):\s+([0-9]{1,15})\.$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class CardMemory:
    """Memory of one card in MiB, `None` where its tool can't tell."""

    name: str
    total_mib: int | None
    free_mib: int | None


@dataclass(frozen=True, slots=True)
class ComputeApp:
    """A process that holds memory of an NVIDIA card."""

    pid: int
    name: str
    used_mib: int | None


def parse_nvidia_memory(text: str) -> tuple[CardMemory, ...] | None:
    """Read `nvidia-smi --query-gpu=name,memory.total,memory.free --format=csv`, columns in any order.

    Returns `None` without the header line, as when nvidia-smi fails.
    """
    lines = [line.strip() for line in plain_lines(text)]
    start = next((index for index, line in enumerate(lines) if "memory." in line and "[MiB]" in line), None)
    if start is None:
        return None
    columns = [column.strip().removesuffix(" [MiB]") for column in lines[start].split(",")]
    rows = [[cell.strip() for cell in line.split(",")] for line in lines[start + 1 :]]
    cards = [dict(zip(columns, row, strict=True)) for row in rows if len(row) == len(columns)]
    return tuple(
        CardMemory(
            name=card.get("name", "NVIDIA GPU"),
            total_mib=_mib(card.get("memory.total", "")),
            free_mib=_mib(card.get("memory.free", "")),
        )
        for card in cards
    )


def parse_compute_apps(text: str) -> tuple[ComputeApp, ...]:
    """Read `nvidia-smi --query-compute-apps=pid,process_name,used_memory --format=csv`, also as a table."""
    matches = (_COMPUTE_APP.fullmatch(line) for line in plain_lines(text))
    return tuple(ComputeApp(int(app["pid"]), app["name"], _mib(app["used"])) for app in matches if app)


def parse_host_memory(text: str) -> HostMemory:
    """Read what `memory` prints there: /proc/meminfo and cgroups, or macOS's `sysctl` and `vm_stat`.

    A limit of cgroup version 1 is larger than any memory where there is none. macOS gives no figure for what is
    available: pages that are free, or can be freed at once, are counted.
    """
    kib = {name: int(size) for name, size in _MEMINFO.findall(text)}
    if kib:
        total, available = kib.get("MemTotal"), kib.get("MemAvailable")
        rooms = [room for size in _CGROUP.findall(text) if (room := int(size)) < (total or UNLIMITED_KIB)]
        return HostMemory(*(_in_mib(size, 1024) for size in (total, available, min(rooms, default=None))))
    sizes = {name: int(size) for name, size in _SYSCTL.findall(text)}
    pages = [int(count) for _, count in _VM_STAT.findall(text)]
    freeable = sum(pages) if pages and "hw.pagesize" in sizes else None
    return HostMemory(_in_mib(sizes.get("hw.memsize"), 1), _in_mib(freeable, sizes.get("hw.pagesize", 1)))


def _in_mib(size: int | None, unit_bytes: int) -> int | None:
    return None if size is None else size * unit_bytes // MIB


def _mib(cell: str) -> int | None:
    size = _MIB.fullmatch(cell)
    return int(size[1]) if size else None
