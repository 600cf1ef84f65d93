"""A build on its way to a site: sent, checked there, unpacked, compiled if it is source."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

from clusterctl.cluster.installed import ROOT
from clusterctl.cluster.steps import Tell
from clusterctl.errors import InstallFailed
from clusterctl.install.archive import Package
from clusterctl.install.site import Look, Site
from clusterctl.model import MIB, Outcome, Step
from clusterctl.remote import commands

CORRUPT = 4
CHUNK_BYTES = 256 * 1024
# Compiling for CUDA or ROCm takes hours on small machines.
TIMEOUT_S = 6 * 3600.0
SHOWN_LINES = 12


async def put(site: Site, look: Look, package: Package, directory: str, flags: Sequence[str], tell: Tell) -> None:
    """Put a build below `ROOT`. Nothing is left of one that fails, or of one that nobody waits for any more.

    Raises:
        InstallFailed: if it arrived damaged, could not be unpacked or does not compile, with what was said last.
        NodeUnreachable: if the node is gone.
    """
    title = f"install {directory}"

    def waiting(detail: str) -> None:
        tell(Step(title, Outcome.WAITING, site.name, detail=detail))

    def hear(data: bytes) -> None:
        lines = data.decode(errors="replace").split("\n")
        waiting(next((line.strip() for line in reversed(lines) if line.strip()), ""))

    command = commands.install_put(
        ROOT,
        directory,
        size_bytes=package.size_bytes,
        sha256=package.sha256,
        path=look.system.path,
        cmake_flags=flags,
    )
    output = await site.transport.feed(command, _content(package, waiting), hear, TIMEOUT_S)
    said = output.stdout.decode(errors="replace").strip().splitlines()
    if output.exit_status == CORRUPT:
        raise InstallFailed(
            f"what arrived is not what was sent: {said[-1]}",
            node=site.name,
            hint="try again; if it happens again, look at the node's memory and disk",
        )
    if output.exit_status != 0:
        raise InstallFailed(
            f"{directory} could not be {'compiled' if flags else 'unpacked'}",
            node=site.name,
            hint="its last words are above; look at free disk space and memory too",
            log=said[-SHOWN_LINES:],
        )


async def _content(package: Package, waiting: Callable[[str], None]) -> AsyncIterator[bytes]:
    """The package, then nothing: an input that stays open says that somebody still waits."""
    sent = 0
    with await asyncio.to_thread(package.path.open, "rb") as file:
        while chunk := await asyncio.to_thread(file.read, CHUNK_BYTES):
            yield chunk
            sent += len(chunk)
            waiting(f"sent {sent / MIB:.0f} of {package.size_bytes / MIB:.0f} MiB")
    await asyncio.Event().wait()
