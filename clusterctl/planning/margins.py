"""Memory that a backend takes beside what llama.cpp accounts for; the figures are in backend_margins.yaml."""

from __future__ import annotations

from functools import cache

from clusterctl.data import read_data
from clusterctl.model import MIB

UNKNOWN = "unknown"


def margin_bytes(backend: str | None, compute_bytes: int = 0) -> int:
    """Bytes to keep free on a device of this backend whose compute buffer is `compute_bytes`.

    A backend that is not known gets the largest margin.
    """
    margins = _margins()
    margin = margins.get(backend or UNKNOWN, margins[UNKNOWN])
    return margin["fixed_mib"] * MIB + compute_bytes * margin["percent_of_compute"] // 100


@cache
def _margins() -> dict[str, dict[str, int]]:
    return read_data("clusterctl.planning", "backend_margins.yaml")
