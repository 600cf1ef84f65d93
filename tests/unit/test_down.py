"""`down` where no record is left: what it can't see or prove stays its business until it can."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusterctl.cluster.membership import Member, Membership, parse_membership
from clusterctl.model import Role
from tests.unit.cli_program import MAIN, Cli, environment

INVENTORY = """\
version: 1
cluster: demo-of-tests
nodes:
  - {name: here, role: head, connection: local}
  - {name: worker, role: worker, connection: local, rpc: {address: 127.0.0.1}}
"""
THIS_MACHINE = socket.gethostname()


@pytest.fixture
def inventory(tmp_path: Path) -> str:
    file = tmp_path / "inventory.yaml"
    file.write_text(INVENTORY)
    return str(file)


@pytest.fixture
def port() -> Iterator[int]:
    """A port of this machine at which something listens that is not of the cluster."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.fixture
def record(tmp_path: Path) -> Path:
    """Where the members of the cluster are kept."""
    file = tmp_path / ".local/state/clusterctl/demo-of-tests/cluster.json"
    file.parent.mkdir(parents=True)
    return file


def members(*members: Member) -> str:
    return Membership(members, "http://127.0.0.1:8080", "demo").to_json()


def left_of(cli: Cli, *arguments: str) -> dict[str, str]:
    done = cli("down", "--json", *arguments)
    assert done.exit_code == 9
    return {left["node"]: f"{left['reason']}; {left['hint']}" for left in json.loads(done.stdout)["left"]}


def test_a_worker_that_is_local_to_another_machine_stays_on_record(inventory: str, record: Path, cli: Cli) -> None:
    away = Member("worker", Role.WORKER, None, "127.0.0.1", 1, hostname="no-such-machine")
    record.write_text(members(away, Member("here", Role.HEAD, None, "127.0.0.1", 1, hostname=THIS_MACHINE)))
    for _ in range(2):
        (reason,) = left_of(cli, "-i", inventory).values()
        assert f"brought up on no-such-machine by `connection: local`, and this is {THIS_MACHINE}" in reason
        assert "run the command on no-such-machine" in reason
    kept = parse_membership(record.read_text())
    assert kept is not None
    assert kept.members == (away,)
    forgotten = cli("down", "-i", inventory, "--node", "worker@no-such-machine", "--force")
    assert forgotten.exit_code == 0
    assert not record.exists()


def test_status_does_not_take_it_for_dead(inventory: str, record: Path, cli: Cli) -> None:
    record.write_text(members(Member("worker", Role.WORKER, None, "127.0.0.1", 1, hostname="no-such-machine")))
    status = json.loads(cli("status", "-i", inventory, "--json").stdout)
    assert [worker["state"] for worker in status["workers"]] == ["unreachable"]


def test_a_port_that_somebody_holds_is_told_until_it_is_closed_or_left_to_them(
    inventory: str, record: Path, port: int, cli: Cli
) -> None:
    worker = Member("worker", Role.WORKER, None, "127.0.0.1", port, hostname=THIS_MACHINE)
    record.write_text(members(worker))
    for arguments in ((), ("--force",), ("--node", "worker")):
        assert f"port {port} is still open" in left_of(cli, "-i", inventory, *arguments)["worker"]
    assert cli("down", "-i", inventory, "--node", "here").exit_code == 0
    assert record.exists()
    done = cli("down", "-i", inventory, "--node", "worker", "--force")
    assert done.exit_code == 0
    assert "what it may still run has not been ended" in done.stderr
    assert not record.exists()


def test_without_an_input_nobody_is_asked(inventory: str, tmp_path: Path) -> None:
    argv = ["sh", "-c", 'exec "$@" <&-', "sh", sys.executable, *MAIN, "down", "-i", inventory]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env=environment(tmp_path))
    assert (done.returncode, done.stdout) == (0, "down: nothing was running\n")
