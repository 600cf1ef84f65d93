"""What the makers' data sheets say of devices, which llama.cpp's programs describe in words: data_sheets.yaml."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from clusterctl.data import read_data

OTHER = "other"
_TRADEMARK = re.compile(r"\s*\((?:TM|R)\)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class DataSheet:
    """A device's memory bandwidth in GB/s and its dense FP16 arithmetic in TFLOP/s; `None` where unknown."""

    gb_s: float | None = None
    tflop_s: float | None = None


def data_sheet(description: str) -> DataSheet:
    """What is known of a device that a program describes so."""
    words = _words(description)
    return next((sheet for name, sheet in _tables().devices if name.search(words)), DataSheet())


def unknown_bandwidth_gb_s(backend: str | None) -> float:
    """A cautious bandwidth for a device of which only the backend is known: the low end of what it runs on."""
    least = _tables().unknown
    return least.get(backend or OTHER, least[OTHER])


def shares_memory(description: str) -> bool:
    """Whether the device is known to share its memory with the CPU."""
    words = _words(description)
    return any(name.search(words) for name in _tables().unified)


@dataclass(frozen=True, slots=True)
class _Tables:
    devices: tuple[tuple[re.Pattern[str], DataSheet], ...]
    unknown: Mapping[str, float]
    unified: tuple[re.Pattern[str], ...]


def _words(description: str) -> str:
    return _TRADEMARK.sub("", description)


@cache
def _tables() -> _Tables:
    raw = read_data("clusterctl.planning", "data_sheets.yaml")
    return _Tables(
        tuple((_name(name), DataSheet(**figures)) for name, figures in raw["devices"].items()),
        raw["unknown"],
        tuple(map(_name, raw["unified"])),
    )


def _name(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE)
