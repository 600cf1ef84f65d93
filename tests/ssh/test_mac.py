"""The scripts as a Mac runs them: its own answers from `uname`, `ps`, `sysctl` and `lsof`, and bash as its sh."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from clusterctl.cluster.observation import observe
from clusterctl.cluster.proof import prove_gone
from clusterctl.cluster.record import Process, ProcessState, Record
from clusterctl.errors import Degraded
from clusterctl.model import Role
from clusterctl.remote import commands
from clusterctl.remote.local import LocalTransport
from tests.ssh.server import end_all_of, living_of
from tests.ssh.waiting import until

CLUSTER, NODE = "demo", "studio"

# Apple's ps pads its columns, and the time of booting moves whenever the clock is corrected.
TOOLS = {
    "uname": "echo 'Darwin studio arm64'",
    "ps": 'case "$*" in *lstart*) printf "%-28s\\n" "$({ps} "$@")" ;; *) exec {ps} "$@" ;; esac',
    "lsof": "exit 1",
    "sysctl": """case "$2" in
kern.bootsessionuuid) echo 6F1C3A52-8E0B-4A53-9E0D-2F6B8C0D4E11 ;;
kern.boottime) echo "{{ sec = 1790000000, usec = $$ }}" ;;
esac""",
}


@pytest.fixture
async def mac(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[LocalTransport]:
    """This machine, looking like a Mac; what is started there is ended."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "sh").symlink_to(str(shutil.which("bash")))
    for name, text in TOOLS.items():
        write_tool(tools / name, text.format(ps=shutil.which("ps")))
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path))
    yield LocalTransport(NODE)
    end_all_of(tmp_path)


def write_tool(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def record_of(*argv: str) -> Record:
    return Record(CLUSTER, NODE, Role.WORKER, argv, "10.0.0.2", 50052, "b1", "me", "now", "digest")


async def start(mac: LocalTransport, *argv: str) -> list[str]:
    """Start a program; the lines state, pid, exit status."""
    output = await mac.run(commands.start(CLUSTER, NODE, argv, record=record_of(*argv).to_json(), env={}))
    return output.stdout.decode().splitlines()


async def stop(mac: LocalTransport) -> str:
    output = await mac.run(commands.stop(CLUSTER, NODE, grace_s=5))
    return output.stdout.decode().strip()


async def test_a_started_program_is_known_again_and_ended(mac: LocalTransport) -> None:
    state, pid, _ = await start(mac, "sleep", "1000")
    assert state == "running"
    process = (await observe(mac, CLUSTER)).process(NODE)
    assert process is not None
    assert (process.state, process.pid) == (ProcessState.RUNNING, int(pid))
    assert await stop(mac) == "stopped"
    assert not psutil.pid_exists(int(pid))


async def test_what_a_script_runs_for_us_ends_with_it(mac: LocalTransport, tmp_path: Path) -> None:
    wrapper = write_tool(tmp_path / "wrapper", 'sleep "$@"\ntrue')
    _, pid, _ = await start(mac, str(wrapper), "1000")
    await until(lambda: bool(psutil.Process(int(pid)).children()))
    assert await stop(mac) == "stopped"
    await until(lambda: not living_of(tmp_path))


async def test_without_a_list_of_sockets_a_port_is_not_proven_closed(mac: LocalTransport) -> None:
    assert (await observe(mac, CLUSTER)).sockets is None
    gone = Process(record_of("sleep", "1000"), ProcessState.RUNNING, 99999999, None)
    with pytest.raises(Degraded, match="whether port 50052 is closed can't be told"):
        await prove_gone(mac, CLUSTER, NODE, gone, lambda _step: None)
