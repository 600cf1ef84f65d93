"""What can break a cluster of a head and the workers `left` and `right`: one entry for each fault."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from enum import StrEnum

from tests.lab.node import Node
from tests.lab.operator import RPC_PORT, Operator
from tests.lab.test_failures import HTTP_SERVER, foreign
from tests.lab.test_lab_itself import wait_until

SLOW_MBIT = 16
WORKER, HEAD = "ggml-rpc-server", "llama-server"
CLOCK = """\
mkdir -p /usr/local/bin
printf '#!/bin/sh\\nexec /bin/date -d "@$(($(/bin/date +%%s) + %s))" "$@"\\n' "$1" >/usr/local/bin/date
chmod 755 /usr/local/bin/date
"""


class Moment(StrEnum):
    """What the cluster does when the fault strikes."""

    LOADING = "loading"
    IDLE = "idle"
    GENERATING = "generating"


Strike = Callable[[Operator], AbstractContextManager[None]]
Preparation = Callable[[Operator], AbstractContextManager[Operator]]


@dataclass(frozen=True, slots=True)
class Fault:
    """`strike` lasts as long as its body, unless the fault passes at once.

    `codes`: of these problems `status` names one; none of them if it is to find nothing wrong. `refusals`: with
    these exit codes `recover` may end while the fault lasts. `is_harmless`: the cluster goes on, and nobody may
    touch it. `prepared` changes the nodes before the cluster is brought up.
    """

    name: str
    strike: Strike
    codes: Mapping[Moment, frozenset[str]]
    refusals: frozenset[int] = frozenset()
    is_harmless: bool = False
    prepared: Preparation = nullcontext


def _always(*codes: str) -> dict[Moment, frozenset[str]]:
    return dict.fromkeys(Moment, frozenset(codes))


def _signal(node: str, program: str, name: str) -> Strike:
    @contextmanager
    def strike(operator: Operator) -> Iterator[None]:
        kill(operator.lab.nodes[node], program, name)
        yield

    return strike


def kill(node: Node, program: str, name: str = "KILL") -> None:
    """Send a program of the cluster a signal; return after SIGKILL once it is gone."""
    pid = next(process.pid for process in node.processes() if process.argv[0].endswith(f"/{program}"))
    node.run(["kill", f"-{name}", str(pid)])
    if name == "KILL":
        wait_until(lambda: pid not in [process.pid for process in node.processes()])


@contextmanager
def _power_off(operator: Operator) -> Iterator[None]:
    left = operator.lab.nodes["left"]
    left.power_off()
    try:
        yield
    finally:
        left.power_on()


@contextmanager
def _cut(operator: Operator) -> Iterator[None]:
    left = operator.lab.nodes["left"]
    left.cut_link(["private"])
    try:
        yield
    finally:
        left.restore_link(["private"])


@contextmanager
def _slow(operator: Operator) -> Iterator[None]:
    left = operator.lab.nodes["left"]
    left.limit_link(SLOW_MBIT, ["private"])
    try:
        yield
    finally:
        left.restore_link(["private"])


@contextmanager
def _ssh_down(operator: Operator) -> Iterator[None]:
    left = operator.lab.nodes["left"]
    left.cut_link(["public"])
    try:
        yield
    finally:
        left.restore_link(["public"])


@contextmanager
def _port_stolen(operator: Operator) -> Iterator[None]:
    left = operator.lab.nodes["left"]
    kill(left, WORKER)
    address = left.private_address
    with foreign(operator.lab, "left", f"{HTTP_SERVER} --bind {address} {RPC_PORT}", address, RPC_PORT):
        yield


@contextmanager
def _clocks_wrong(operator: Operator) -> Iterator[None]:
    shifts_s = {"head": 86400, "left": -86400, "right": 3600}
    for name, shift_s in shifts_s.items():
        operator.lab.nodes[name].run(["sh", "-c", CLOCK, "sh", str(shift_s)])
    try:
        yield
    finally:
        for name in shifts_s:
            operator.lab.nodes[name].run(["rm", "/usr/local/bin/date"])


@contextmanager
def _control_killed(operator: Operator) -> Iterator[None]:
    """The machine that brings it up dies, with the lock in its hands if it still has it."""
    with operator.running("up") as bringing_up:
        bringing_up.wait_for("look at the nodes")
        bringing_up.interrupt(signal.SIGKILL)
    try:
        yield
    finally:
        operator.succeed("unlock")


def _small_disks(node: str, program: str, folders: Sequence[str]) -> tuple[Preparation, Strike]:
    """A node whose folders lie on small disks of their own, and what fills these and ends its program."""

    @contextmanager
    def prepared(operator: Operator) -> Iterator[Operator]:
        machine = operator.lab.nodes[node]
        for folder in folders:
            machine.run(["mkdir", "-p", folder])
            machine.run(["mount", "-t", "tmpfs", "-o", "size=96m", "disk", folder])
        try:
            yield operator.with_node(node, rpc={"cache": True})
        finally:
            for folder in folders:
                machine.run(["umount", folder])

    @contextmanager
    def strike(operator: Operator) -> Iterator[None]:
        machine = operator.lab.nodes[node]
        for folder in folders:
            machine.run(["dd", "if=/dev/zero", f"of={folder}/filling", "bs=64k"], check=False)
        kill(machine, program)
        try:
            yield
        finally:
            for folder in folders:
                machine.run(["rm", f"{folder}/filling"])

    return prepared, strike


_WORKER_DISK = _small_disks("right", WORKER, ("/root/.local", "/root/.cache"))
_HEAD_DISK = _small_disks("head", HEAD, ("/root/.local",))

FAULTS = (
    Fault("worker killed", _signal("left", WORKER, "KILL"), _always("worker-stopped")),
    Fault("worker stopped", _signal("left", WORKER, "STOP"), _always("worker-suspended")),
    Fault("node powered off", _power_off, _always("unreachable"), refusals=frozenset({3})),
    Fault(
        "link cut",
        _cut,
        {**_always("wedged"), Moment.LOADING: frozenset()},
        refusals=frozenset({9}),
    ),
    Fault("link slow", _slow, _always(), is_harmless=True),
    Fault("head killed", _signal("head", HEAD, "KILL"), _always("head-stopped")),
    Fault("head stopped", _signal("head", HEAD, "STOP"), _always("head-suspended")),
    Fault(
        "worker's disk full",
        _WORKER_DISK[1],
        _always("worker-stopped"),
        refusals=frozenset({9}),
        prepared=_WORKER_DISK[0],
    ),
    Fault(
        "head's disk full",
        _HEAD_DISK[1],
        _always("head-stopped"),
        refusals=frozenset({9}),
        prepared=_HEAD_DISK[0],
    ),
    Fault("port stolen", _port_stolen, _always("worker-stopped"), refusals=frozenset({9})),
    Fault("clocks wrong", _clocks_wrong, _always(), is_harmless=True),
    Fault("SSH down but RPC up", _ssh_down, _always("unreachable"), refusals=frozenset({3}), is_harmless=True),
    Fault("control machine killed", _control_killed, _always(), refusals=frozenset({8}), is_harmless=True),
)
