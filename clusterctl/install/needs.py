"""What compiling on a node takes. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from clusterctl.errors import InstallFailed
from clusterctl.install.site import Look, Site, backends_of
from clusterctl.install.table import BackendNeeds, builds
from clusterctl.model import Build

OVERRIDE = "HSA_OVERRIDE_GFX_VERSION"
_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)")


def cmake_flags(site: Site, look: Look, build: Build) -> tuple[str, ...]:
    """Return the flags of cmake for a site: those of all its nodes' backends, RPC always among them.

    `build` is what the programs will say of themselves, since a source archive has no history to count.

    Raises:
        InstallFailed: if a backend can't be compiled there, with every tool that is missing.
    """
    needs = [builds().common, *_backend_needs(site, look)]
    _demand_tools(site, look, needs)
    if "rocm" in backends_of(site, look):
        _demand_gpu(site, look)
    flags = [flag for each in needs for flag in each.flags]
    facts = {"gpu_targets": ";".join(gpu_targets(site, look)), "hip_compiler": look.hip_compiler or ""}
    filled = [flag.format(**facts) for flag in (*flags, *builds().system_flags[look.system.os])]
    return tuple(f"-D{flag}" for flag in (*filled, *_identity(build)))


def gpu_targets(site: Site, look: Look) -> tuple[str, ...]:
    """Return the GPUs to compile for: what the node's env makes ROCm believe, else what ROCm says.

    `11.5.1` is gfx1151: major, minor and stepping, the last two in hexadecimal (LLVM, AMDGPU processors).
    """
    versions = {node.env.get(OVERRIDE) for node in site.nodes} - {None}
    parts = [match for version in versions if (match := _VERSION.fullmatch(version or ""))]
    overridden = sorted(f"gfx{match[1]}{int(match[2]):x}{int(match[3]):x}" for match in parts)
    return tuple(overridden) or look.gpu_targets


def _backend_needs(site: Site, look: Look) -> Iterator[BackendNeeds]:
    for backend in backends_of(site, look):
        if backend not in builds().backends:
            raise InstallFailed(
                f"clusterctl can't compile for {backend}",
                node=site.name,
                hint="build llama.cpp there yourself with -DGGML_RPC=ON, and name its directory in llama.bin_dir",
            )
        yield builds().backends[backend]


def _demand_tools(site: Site, look: Look, needs: Sequence[BackendNeeds]) -> None:
    missing = {tool: origin for each in needs for tool, origin in each.tools.items() if tool not in look.tools}
    if missing:
        raise InstallFailed(
            f"to compile llama.cpp, {', '.join(missing)} must be in PATH ({look.system.path})",
            node=site.name,
            hint="; ".join(f"{tool} comes with {origin}" for tool, origin in missing.items()),
        )


def _demand_gpu(site: Site, look: Look) -> None:
    if not gpu_targets(site, look) or look.hip_compiler is None:
        unknown = "rocminfo names no GPU" if look.hip_compiler else "hipconfig names no compiler"
        raise InstallFailed(
            f"{unknown}, so it is not known how to compile for ROCm",
            node=site.name,
            hint=f"add the SSH user to the groups render and video, or set {OVERRIDE} in the node's env",
        )


def _identity(build: Build) -> Iterator[str]:
    if build.number is not None:
        yield f"LLAMA_BUILD_NUMBER={build.number}"
    if name := build.commit or build.tag:
        yield f"LLAMA_BUILD_COMMIT={name}"
