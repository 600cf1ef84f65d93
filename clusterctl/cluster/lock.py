"""The cluster's lock: kept on the head, named after its holder, and a lease that expires by itself."""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import json
import os
import secrets
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from clusterctl.errors import ClusterctlError, CommandTimeout, LockHeld, StartFailed
from clusterctl.remote import commands
from clusterctl.remote.transport import Transport

LEASE_S = 60
BEAT_S = 10
# Older, the lock is renewed before anything is changed.
FRESH_S = 2
_HINT = "look at free disk space and at the user's rights in ~/.local/state"


class LockFailed(StartFailed):
    """The lock can't be made, or removed."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Who holds a lock: the user and machine, the process there, the command and since when."""

    who: str
    where: str
    pid: int
    command: str
    since: str

    @classmethod
    def of_this_process(cls, command: str) -> Owner:
        """This process, about to run `command`."""
        since = datetime.now(UTC).isoformat(timespec="seconds")
        return cls(user_name(), socket.gethostname(), os.getpid(), command, since)

    def __str__(self) -> str:
        return f"{self.who}@{self.where} (pid {self.pid}) runs `{self.command}` since {self.since}"


@dataclass(slots=True)
class Lease:
    """A lock that is held for as long as its holder renews it, and that somebody else may have taken since."""

    head: Transport
    cluster: str
    token: str
    renewed_s: float

    async def demand(self) -> None:
        """Return if the lock is held for certain.

        A machine that slept finds its connections alive, its own clock at rest, and its lock with another.

        Raises:
            LockHeld: if it has been lost.
            NodeUnreachable: if that can't be told.
        """
        if abs(time.time() - self.renewed_s) > FRESH_S:
            await self.renew()

    async def renew(self) -> None:
        """Say that the holder lives.

        Raises:
            LockHeld: if the lock has been lost.
            NodeUnreachable: if that can't be told.
        """
        now_s = time.time()
        output = await self.head.run(commands.lock("beat", self.cluster, self.token, lease_s=LEASE_S))
        if output.exit_status != 0:
            self.renewed_s = float("-inf")
            reason = _holder(output.stdout)[0] if output.stdout else "somebody has removed it"
            raise LockHeld(
                f"this command has lost the cluster's lock: {reason}",
                node=self.head.node,
                hint="`clusterctl status` shows what runs now",
            )
        self.renewed_s = now_s

    async def keep(self) -> None:
        """Renew the lock again and again; return once it has been lost for good."""
        while True:
            await asyncio.sleep(BEAT_S)
            try:
                await self.renew()
            except CommandTimeout:
                continue  # a head that is busy with loading may be slow to answer
            except ClusterctlError:
                return


def user_name() -> str:
    """Who runs this process: by name or, as in a container whose user has none, by number."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def new_token() -> str:
    """A name for one holder that nobody else has."""
    return secrets.token_hex(8)


@asynccontextmanager
async def holding(head: Transport, cluster: str, command: str, token: str | None = None) -> AsyncIterator[Lease]:
    """Hold the cluster's lock while the body runs, and keep saying so; who makes changes asks it first.

    With the same `token`, a lock that could not be given back because the connection broke is found again.

    Raises:
        LockHeld: if another holds it, with its name and how to get past it.
        LockFailed: if it can't be made, as on a full disk.
    """
    token = token or new_token()
    owner = json.dumps(asdict(Owner.of_this_process(command)))
    lease = Lease(head, cluster, token, time.time())
    try:
        await _acquire(head, cluster, token, owner)
        keeping = asyncio.create_task(lease.keep())
        try:
            yield lease
        finally:
            keeping.cancel()
            await asyncio.wait([keeping])
    finally:
        # Also after an interrupt while it was taken. A lost connection leaves the lock to its lease.
        with contextlib.suppress(ClusterctlError):
            await head.run(commands.lock("release", cluster, token, lease_s=LEASE_S))


async def break_lock(head: Transport, cluster: str) -> str | None:
    """Remove the lock whoever holds it; return who did, or `None` if nobody.

    Raises:
        LockFailed: if it can't be removed, as on a disk that is read-only.
    """
    output = await head.run(commands.lock("break", cluster, "broken", lease_s=LEASE_S))
    if output.exit_status not in (0, 3):
        raise LockFailed("the cluster's lock can't be removed", node=head.node, hint=_HINT)
    return None if output.exit_status else _holder(output.stdout)[0]


async def _acquire(head: Transport, cluster: str, token: str, owner: str) -> None:
    output = await head.run(commands.lock("acquire", cluster, token, lease_s=LEASE_S, owner=owner))
    if output.exit_status == 0:
        return
    if output.exit_status != 3:
        raise LockFailed(
            f"could not take the cluster's lock: {output.stderr.strip()[:300]}",
            node=head.node,
            hint=_HINT,
        )
    holder, age_s = _holder(output.stdout)
    raise LockHeld(
        f"the cluster is locked: {holder}, last sign of life {age_s} s ago",
        node=head.node,
        hint=f"wait for it; a dead holder's lock expires {LEASE_S} s after its last sign of life,"
        " or remove it now with `clusterctl unlock`",
    )


def _holder(stdout: bytes) -> tuple[str, str]:
    age, _, document = stdout.decode(errors="replace").partition("\n")
    try:
        return str(Owner(**json.loads(document))), age
    except (ValueError, TypeError):
        return "its holder left no name", age
