"""builds.yaml as a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from clusterctl.data import read_data


@dataclass(frozen=True, slots=True)
class BackendNeeds:
    """What compiling for a backend takes: flags of cmake, and tools with where they come from."""

    flags: tuple[str, ...]
    tools: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Builds:
    """The table. `release` has platform names of release files by `os arch`, then by backend."""

    release: Mapping[str, Mapping[str, str]]
    companion: str
    common: BackendNeeds
    system_flags: Mapping[str, tuple[str, ...]]
    backends: Mapping[str, BackendNeeds]

    @property
    def tools(self) -> tuple[str, ...]:
        """Every tool that any backend takes."""
        needs = (self.common, *self.backends.values())
        return tuple(dict.fromkeys(tool for each in needs for tool in each.tools))


@cache
def builds() -> Builds:
    """Read the table."""
    raw = read_data("clusterctl.install", "builds.yaml")
    compiling = raw["compile"]
    return Builds(
        release=raw["release"],
        companion=raw["companion"],
        common=BackendNeeds(tuple(compiling["flags"]), compiling["tools"]),
        system_flags={system: tuple(flags) for system, flags in compiling["systems"].items()},
        backends={
            name: BackendNeeds(tuple(needs["flags"]), needs["tools"])
            for name, needs in compiling["backends"].items()
        },
    )
