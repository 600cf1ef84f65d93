"""The memory bandwidth of devices, which decides how fast they decode; the figures are in bandwidth.yaml."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

import yaml

from clusterctl.model import Offer

OTHER = "other"
_TRADEMARK = re.compile(r"\s*\((?:TM|R)\)", re.IGNORECASE)


def bandwidth_gb_s(offer: Offer) -> float:
    """The bandwidth the user gives, else the data sheet's, else a cautious figure for the backend."""
    known = known_bandwidth_gb_s(offer)
    return unknown_bandwidth_gb_s(offer.backend) if known is None else known


def known_bandwidth_gb_s(offer: Offer) -> float | None:
    """The bandwidth the user gives, else the data sheet's; `None` if there is neither."""
    return offer.bandwidth_gb_s or _listed_gb_s(offer.description)


def unknown_bandwidth_gb_s(backend: str | None) -> float:
    """A cautious figure for a device of which only the backend is known."""
    unknown = _table().unknown
    return unknown.get(backend or OTHER, unknown[OTHER])


def is_unified(offer: Offer) -> bool:
    """Whether the device is known to share its memory with the CPU."""
    words = _words(offer.description)
    return any(name.search(words) for name in _table().unified)


@dataclass(frozen=True, slots=True)
class _Table:
    devices: tuple[tuple[re.Pattern[str], float], ...]
    unknown: Mapping[str, float]
    unified: tuple[re.Pattern[str], ...]


def _listed_gb_s(description: str) -> float | None:
    words = _words(description)
    return next((gb_s for name, gb_s in _table().devices if name.search(words)), None)


def _words(description: str) -> str:
    return _TRADEMARK.sub("", description)


@cache
def _table() -> _Table:
    text = resources.files(__package__).joinpath("bandwidth.yaml").read_text(encoding="utf-8")
    raw = yaml.safe_load(text)
    return _Table(
        tuple((_name(name), gb_s) for name, gb_s in raw["devices"].items()),
        raw["unknown"],
        tuple(map(_name, raw["unified"])),
    )


def _name(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE)
