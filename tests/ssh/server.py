"""An SSH server in this process that runs the real `sh`, with a home directory of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import asyncssh
import psutil

from clusterctl.remote.target import Destination
from clusterctl.remote.transport import Reader, Writer

HOST = "127.0.0.1"
USER = "ops"


@dataclass(slots=True)
class Machine:
    """What a server's machine holds: the user's home, connections, and the programs that were started.

    `forwards` is whether its sshd lets connections through.
    """

    home: Path
    forwards: bool = True
    logging_in: int = 0
    most_logging_in: int = 0
    connected: set[asyncssh.SSHServerConnection] = field(default_factory=set)
    programs: list[Process] = field(default_factory=list)

    def drop_connections(self) -> None:
        """Break every connection off without a word, as a machine does that loses its power."""
        for connection in tuple(self.connected):
            connection.abort()

    async def kill_programs(self) -> None:
        """End all programs, and what they left behind."""
        end_all_of(self.home)
        for program in self.programs:
            await program.wait()


def living_of(home: Path) -> list[psutil.Process]:
    """Every living process with this home, in whatever session."""
    return [process for process in psutil.process_iter() if _home_of(process) == str(home)]


def end_all_of(home: Path) -> None:
    """End all that has this home."""
    for process in living_of(home):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


def _home_of(process: psutil.Process) -> str | None:
    try:
        return process.environ().get("HOME")
    except psutil.Error:  # a zombie has no environment left
        return None


Shell = Callable[[asyncssh.SSHServerProcess[bytes], Machine], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Server:
    """A running server, and what a client needs to trust it and to be let in."""

    port: int
    machine: Machine
    host_key: asyncssh.SSHKey
    identity_file: Path
    known_hosts: Path

    @property
    def home(self) -> Path:
        """The home of the SSH user."""
        return self.machine.home

    @property
    def destination(self) -> Destination:
        """How to reach the server, with nothing left to `~/.ssh/config`."""
        return Destination(
            host=HOST,
            user=USER,
            port=self.port,
            identity_file=str(self.identity_file),
            known_hosts=str(self.known_hosts),
            connect_timeout_s=5.0,
        )

    @property
    def known_hosts_line(self) -> str:
        """The line of known_hosts that names the server's key."""
        return f"[{HOST}]:{self.port} {self.host_key.export_public_key().decode()}"

    def config_entry(self, alias: str, *further: str) -> str:
        """An entry of ~/.ssh/config that leads to the server."""
        lines = (
            f"HostName {HOST}",
            f"Port {self.port}",
            f"User {USER}",
            f"IdentityFile {self.identity_file}",
            *further,
        )
        return f"Host {alias}\n" + "".join(f"  {line}\n" for line in lines)


@asynccontextmanager
async def serving(directory: Path, shell: Shell | None = None) -> AsyncIterator[Server]:
    """Serve on a free port of loopback; keys and the user's home lie in `directory`."""
    home, authorized, identity = directory / "home", directory / "authorized_keys", directory / "id"
    home.mkdir(parents=True)
    host_key, client_key = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
    client_key.write_private_key(identity)
    identity.chmod(0o600)
    client_key.write_public_key(authorized)
    machine = Machine(home)
    acceptor = await asyncssh.listen(
        HOST,
        0,
        server_factory=lambda: _Watched(machine),
        process_factory=lambda process: (shell or posix_shell)(process, machine),
        server_host_keys=[host_key],
        authorized_client_keys=str(authorized),
        encoding=None,
    )
    server = Server(acceptor.get_port(), machine, host_key, identity, directory / "known_hosts")
    server.known_hosts.write_text(server.known_hosts_line)
    try:
        yield server
    finally:
        machine.drop_connections()
        await machine.kill_programs()
        acceptor.close()
        await acceptor.wait_closed()


class _Watched(asyncssh.SSHServer):
    """Counts logins and connections, and lets the client through to every address, or to none."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn
        machine = self._machine
        machine.logging_in += 1
        machine.most_logging_in = max(machine.most_logging_in, machine.logging_in)

    def auth_completed(self) -> None:
        self._machine.logging_in -= 1
        self._machine.connected.add(self._connection)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._connection in self._machine.connected:
            self._machine.connected.discard(self._connection)
        else:
            self._machine.logging_in -= 1

    async def connection_requested(
        self, dest_host: str, dest_port: int, orig_host: str, orig_port: int
    ) -> asyncssh.SSHTCPSession[bytes]:
        if not self._machine.forwards:
            raise asyncssh.ChannelOpenError(asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED, "open failed")
        try:
            forwarder = await self._connection.forward_connection(dest_host, dest_port)
            return cast("asyncssh.SSHTCPSession[bytes]", forwarder)  # it has the methods of one
        except asyncssh.ChannelOpenError as error:
            number = re.match(r"\[Errno (\d+)\]", error.reason)
            reason = os.strerror(int(number[1])) if number else error.reason  # sshd gives the system's words
            raise asyncssh.ChannelOpenError(error.code, reason) from error


async def posix_shell(process: asyncssh.SSHServerProcess[bytes], machine: Machine) -> None:
    """Run what the client asks for by `sh -c`, as sshd does for a user whose shell is sh.

    Like sshd it waits until nobody holds the program's output open any more, and lets the program go on when
    the client has left.
    """
    child = await asyncio.create_subprocess_exec(
        "/bin/sh",
        "-c",
        process.command or "",
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        cwd=machine.home,
        env={"HOME": str(machine.home), "PATH": os.environ["PATH"], "USER": USER},
        start_new_session=True,
    )
    machine.programs.append(child)
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stderr is not None
    feeding = asyncio.create_task(_pump(process.stdin, child.stdin))
    await asyncio.gather(_pump(child.stdout, process.stdout), _pump(child.stderr, process.stderr))
    feeding.cancel()
    process.exit(await child.wait())


async def _pump(reader: Reader, writer: Writer) -> None:
    with contextlib.suppress(asyncssh.Error, OSError):
        while chunk := await reader.read(65536):
            writer.write(chunk)
            await writer.drain()
        writer.write_eof()
