"""Archives of any kind, packed anew: nodes get one kind only, with nothing in it but what belongs to a build."""

from __future__ import annotations

import hashlib
import lzma
import posixpath
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

from clusterctl.cluster.facts import WORKER_PROGRAMS
from clusterctl.errors import UsageError

MODE = 0o755
READ_BYTES = 1024 * 1024
# RuntimeError: zipfile's for passwords and methods that it does not know.
DAMAGES = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, OSError, EOFError, RuntimeError)
# What an archive is searched for: a directory that holds one name of every row.
PROGRAMS = (("llama-server",), WORKER_PROGRAMS)
SOURCE_TREE = (("CMakeLists.txt",), ("ggml/CMakeLists.txt",))


@dataclass(frozen=True, slots=True)
class Member:
    """A file of an archive, or a symbolic link with its target."""

    name: str
    size: int
    open: Callable[[], IO[bytes] | None]
    target: str | None = None


@dataclass(frozen=True, slots=True)
class Package:
    """A .tar.gz to send: its place on this machine, its size and its hash."""

    path: Path
    size_bytes: int
    sha256: str


def pack(archives: Sequence[Path], wanted: Sequence[tuple[str, ...]], package: Path) -> Package:
    """Pack the one directory of the first archive that holds what is wanted; libraries of the others join it.

    Nothing outside that directory is taken, so no name in an archive can lead anywhere else on a node.

    Raises:
        UsageError: if an archive can't be read, or has no such directory, or several.
    """
    with ExitStack() as stack:
        first, *others = [list(_members(path, stack)) for path in archives]
        root = _root(archives[0], first, wanted)
        taken = {m.name[len(root) :]: m for m in first if m.name.startswith(root)}
        libraries = (member for members in others for member in members)
        taken |= {posixpath.basename(m.name): m for m in libraries if ".so" in posixpath.basename(m.name)}
        try:
            _write(taken, package)
        except DAMAGES as error:
            raise UsageError(f"{archives[0].name} is damaged: {error}", hint="fetch it again") from error
    with package.open("rb") as packed:
        sha256 = hashlib.file_digest(packed, "sha256").hexdigest()
    return Package(package, package.stat().st_size, sha256)


def _write(members: dict[str, Member], package: Path) -> None:
    with tarfile.open(package, "w:gz", compresslevel=1) as tar:
        # In the order of the archive: to go back in a compressed one means to read it again from its start.
        for name, member in members.items():
            entry = tarfile.TarInfo(name)
            entry.mode = MODE  # wheels and some archives lose the run bits
            if member.target is not None:
                entry.type, entry.linkname = tarfile.SYMTYPE, member.target
                tar.addfile(entry)
                continue
            entry.size = member.size
            with member.open() or _nothing(name) as content:
                tar.addfile(entry, content)


def _root(archive: Path, members: Sequence[Member], wanted: Sequence[tuple[str, ...]]) -> str:
    """The directory that holds what is wanted, as a prefix of names; the shallowest of a source tree's."""
    names = {member.name for member in members}
    leading = wanted[0][0]
    roots = [name.removesuffix(leading) for name in names if posixpath.basename(name) == leading]
    fitting = sorted(
        (root for root in roots if all(any(f"{root}{name}" in names for name in row) for row in wanted)),
        key=lambda root: (root.count("/"), root),
    )
    sought = " and ".join(" or ".join(row) for row in wanted)
    if not fitting:
        raise UsageError(f"{archive.name} has no directory with {sought}", hint="is it the right archive?")
    if len(fitting) > 1 and fitting[0].count("/") == fitting[1].count("/"):
        raise UsageError(f"{archive.name} has {sought} in both {fitting[0]} and {fitting[1]}", hint="keep one")
    return fitting[0]


def _members(path: Path, stack: ExitStack) -> Iterator[Member]:
    try:
        if zipfile.is_zipfile(path):
            archive = stack.enter_context(zipfile.ZipFile(path))
            yield from _zip_members(archive)
        else:
            tar = stack.enter_context(tarfile.TarFile.open(path))
            yield from _tar_members(tar)
    except DAMAGES as error:
        reason = str(error).partition(":")[0]
        raise UsageError(f"can't read {path}: {reason}", hint="give a wheel, .zip or .tar.gz") from error


def _tar_members(tar: tarfile.TarFile) -> Iterator[Member]:
    for entry in tar:
        name = entry.name.removeprefix("./")
        if not _is_plain(name):
            continue
        if entry.issym() and _stays_within(name, entry.linkname):
            yield Member(name, 0, lambda: None, entry.linkname)
        elif entry.isfile():
            yield Member(name, entry.size, partial(tar.extractfile, entry))
    # The check sum of a compressed archive is at its end, behind what tar looks at.
    while tar.fileobj and tar.fileobj.read(READ_BYTES):
        pass


def _zip_members(archive: zipfile.ZipFile) -> Iterator[Member]:
    """Equal files beside each other become links: wheels can't hold any, and carry each library three times."""
    first: dict[tuple[str, int, int], str] = {}
    for entry in archive.infolist():
        if entry.is_dir() or not _is_plain(entry.filename):
            continue
        if stat.S_ISLNK(entry.external_attr >> 16):
            link = archive.read(entry).decode(errors="replace")
            if _stays_within(entry.filename, link):
                yield Member(entry.filename, 0, lambda: None, link)
            continue
        folder, name = posixpath.split(entry.filename)
        original = first.setdefault((folder, entry.CRC, entry.file_size), name)
        target = None if original == name else original
        yield Member(entry.filename, entry.file_size, partial(archive.open, entry), target)


def _is_plain(name: str) -> bool:
    return not name.startswith("/") and ".." not in name.split("/")


def _stays_within(name: str, target: str) -> bool:
    """Whether a link leads to a file of its own directory, as those of libraries do."""
    return "/" not in target and _is_plain(target) and bool(target)


def _nothing(name: str) -> IO[bytes]:
    raise UsageError(f"{name} can't be read from its archive", hint="fetch it again")
