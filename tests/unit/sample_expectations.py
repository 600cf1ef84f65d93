"""The recorded outputs in tests/samples, and what expected.yaml says that they hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from clusterctl.model import Build, Device

SAMPLES = Path(__file__).parents[1] / "samples"
_EXPECTED: dict[str, Any] = yaml.safe_load((SAMPLES / "expected.yaml").read_text("utf-8"))

NAMES: tuple[str, ...] = tuple(_EXPECTED["samples"])
SAME_BUILDS: tuple[frozenset[str], ...] = tuple(frozenset(names) for names in _EXPECTED["same_builds"])


def sample(name: str) -> str:
    """The text of a sample, with its line ends."""
    return (SAMPLES / name).read_bytes().decode("utf-8")


def expected_build(name: str) -> Build | None:
    parts = _EXPECTED["samples"][name].get("build")
    return None if parts is None else Build(*parts)


def expected_devices(name: str) -> tuple[Device, ...] | None:
    rows = _EXPECTED["samples"][name].get("devices")
    return None if rows is None else tuple(Device(*row) for row in rows)


def expected_kept(name: str) -> tuple[str, ...]:
    return tuple(_EXPECTED["samples"][name]["kept"])


def expected_commits(name: str) -> frozenset[str]:
    return frozenset(_EXPECTED["samples"][name].get("commits", ()))


WITH_BUILD = tuple(name for name in NAMES if expected_build(name) is not None)
WITH_DEVICES = tuple(name for name in NAMES if expected_devices(name) is not None)
WITH_COMMITS = tuple(name for name in NAMES if expected_commits(name))
