"""What is to be installed, as the command line says it."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from clusterctl.cluster.installed import ROOT, uses_installed
from clusterctl.config.inventory import Inventory
from clusterctl.errors import UsageError
from clusterctl.llama.build_pin import parse_pin, satisfies_pin
from clusterctl.llama.sameness import Sameness
from clusterctl.model import Build

RELEASES = "https://api.github.com/repos/ggml-org/llama.cpp/releases"


class Source(StrEnum):
    """Where programs come from: a release's files, a wheel or an archive with programs, or source to compile."""

    RELEASE = "release"
    SOURCE = "source"
    WHEEL = "wheel"
    ARCHIVE = "archive"


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A file on this machine and its hash."""

    path: Path
    sha256: str


@dataclass(frozen=True, slots=True)
class Order:
    """`name` is the build as the user named it; `files` has a file for every node unless it is a release."""

    name: str
    build: Build
    source: Source
    files: Mapping[str, LocalFile]
    releases_url: str = RELEASES


def make_order(
    inventory: Inventory,
    name: str,
    source: Source,
    arguments: Sequence[str],
    accepted_sha256: Collection[str],
    releases_url: str,
) -> Order:
    """Check what was asked for, and read the files' hashes.

    Raises:
        UsageError: for a build that is none, an inventory that would not use it, a file that can't be read, is
            not there for some node, or has another hash than those accepted.
    """
    build = parse_pin(name)
    if build is None:
        raise UsageError(f"{name!r} is not a build of llama.cpp", hint="such as b11434, or a commit: 7e4c0a9")
    _demand_use(inventory, build)
    if source is not Source.RELEASE:
        files = _files_by_node(inventory, source, arguments, accepted_sha256)
        return Order(name.strip().lower(), build, source, files)
    if arguments or accepted_sha256:
        raise UsageError("a release takes no files and no --sha256", hint="it publishes its own hashes")
    if build.tag is None:
        raise UsageError(f"a release is named by its tag, not {name}", hint="such as b11434")
    return Order(build.tag, build, source, {}, releases_url)


def _demand_use(inventory: Inventory, build: Build) -> None:
    """Refuse to put anything where the inventory would not let it be used."""
    for node in inventory.nodes:
        pin = node.llama.build
        if pin and satisfies_pin(build, pin).verdict is Sameness.MISMATCH:
            raise UsageError(
                f"{node.name}: the inventory pins llama.cpp {pin}",
                hint="install that build, or change llama.build first",
            )
        if not uses_installed(node):
            raise UsageError(
                f"{node.name}: llama.bin_dir is {node.llama.bin_dir}, so what is installed would not be used",
                hint=f"remove llama.bin_dir from the inventory, or set it to {ROOT}/current",
            )


def _files_by_node(
    inventory: Inventory, source: Source, arguments: Sequence[str], accepted: Collection[str]
) -> dict[str, LocalFile]:
    names = [node.name for node in inventory.nodes]
    named: dict[str, str] = {}
    general: list[str] = []
    for argument in arguments:
        node, _, path = argument.partition("=")
        if path and node in names:
            named[node] = path
        elif path and not Path(argument).exists() and "/" not in node:
            raise UsageError(f"no node is called {node}", hint=f"known are {', '.join(names)}")
        else:
            general.append(argument)
    without = [name for name in names if name not in named]
    if len(general) > 1 or (without and not general):
        raise UsageError(
            f"--from {source} needs one FILE, or NODE=FILE for each node; {', '.join(without)} would have "
            f"{len(general) or 'none'}",
        )
    paths = {name: named.get(name, *general) for name in names} if general else named
    files = {path: _local_file(Path(path), accepted) for path in dict.fromkeys(paths.values())}
    return {name: files[path] for name, path in paths.items()}


def _local_file(path: Path, accepted: Collection[str]) -> LocalFile:
    try:
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UsageError(f"can't read {path}: {error.strerror}", hint="name a file of this machine") from error
    if accepted and sha256 not in {each.lower() for each in accepted}:
        raise UsageError(f"the sha256 of {path} is {sha256}, which is none of those given", hint="don't use it")
    return LocalFile(path, sha256)
