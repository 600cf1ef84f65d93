"""The tensors that workers keep on disk, so that the next start needn't send them again. Pure.

llama.cpp never removes any of them, and does not notice that one could not be written whole: the next start
would load wrong weights (ggml/src/ggml-rpc/ggml-rpc.cpp: `set_tensor`, `get_cached_file`). So the room for them
is made sure of before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from clusterctl.model import Problem, Severity
from clusterctl.remote.answer import whole_number

GIB_MIB = 1024
KIB_PER_MIB = 1024
# Behind the heading: total, used, free, and how full it is.
_FREE = re.compile(r"\n.*? \d+ +\d+ +(\d+) +(?:\d+%|-) +/")


@dataclass(frozen=True, slots=True)
class CacheDisk:
    """MiB that a cluster's cache takes on a node, and MiB free on its disk; `None` where it can't be told."""

    used_mib: int | None = None
    free_mib: int | None = None


def cache_directory(cluster: str, home: str) -> str:
    """The cluster's own directory, so that its size can be shown and it can be removed."""
    return f"{home}/.cache/clusterctl/{cluster}"


def parse_cache_disk(text: str) -> CacheDisk:
    """Read a line of KiB used, and what `df -Pk` prints of the disk; the name of a disk may hold blanks."""
    used, _, listing = text.partition("\n")
    disk = _FREE.search(listing)
    return CacheDisk(_mib(used), _mib(disk[1]) if disk else None)


def _mib(kib: str) -> int | None:
    figure = whole_number(kib)
    return None if figure is None else figure // KIB_PER_MIB


def cache_problems(disk: CacheDisk, *, is_wanted: bool) -> Iterator[Problem]:
    """Tell how large a cache is, and whether its disk can be judged."""
    if is_wanted and disk.free_mib is None:
        yield Problem(
            "disk-unknown",
            Severity.ERROR,
            "the free space for the worker's cache can't be told",
            "look at `df ~/.cache` on the node, or set rpc.cache to false",
        )
    if disk.used_mib:
        free = "" if disk.free_mib is None else f", and {disk.free_mib / GIB_MIB:.1f} GiB are free beside it"
        yield Problem(
            "worker-cache",
            Severity.NOTE,
            f"the worker's cache holds {disk.used_mib / GIB_MIB:.1f} GiB{free}",
            "`clusterctl down --purge-cache` removes it",
        )
