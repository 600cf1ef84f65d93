"""The lab holds what its tests rely on; shown with plain OpenSSH and nothing of clusterctl."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from tenacity import retry, retry_if_result, stop_after_delay, wait_fixed

from tests.lab.conftest import MakeLab
from tests.lab.inspection import Listener
from tests.lab.lab import Lab, NodeSpec
from tests.lab.slot import Slot
from tests.lab.system import LabError
from tools.fetch import BUILDS

SSH_PORT = 22
RPC_PORT = 50052
LLAMA = "/opt/llama.cpp/bin"


@pytest.fixture(scope="module")
def lab(make_lab: MakeLab) -> Lab:
    return make_lab([NodeSpec("head", build="b10434", models=True), NodeSpec("worker", build="b10068")])


@pytest.fixture
def bare_lab(require_lab: None) -> Iterator[Lab]:
    with Lab([NodeSpec("a", build=None), NodeSpec("b", build=None)]) as lab:
        yield lab


def reaches(address: str, port: int = SSH_PORT) -> bool:
    try:
        socket.create_connection((address, port), timeout=1).close()
    except OSError:
        return False
    return True


def traces(slot: Slot, node: str) -> set[tuple[Path, int]]:
    """What the machine shows of a lab, with inode numbers: another lab may get the slot, and its names, next."""
    paths = [
        Path("/sys/class/net", slot.uplink),
        Path(f"/run/netns/{slot.prefix}switch"),
        Path(f"/run/netns/{slot.prefix}node-{node}"),
        *Path("/sys/fs/cgroup").glob(f"**/{slot.prefix}{node}"),
        slot.directory / node,
    ]
    return {(path, path.stat().st_ino) for path in paths if path.exists()}


def machine_pids(lab: Lab) -> list[int]:
    return [process.machine_pid for node in lab.nodes.values() for process in node.processes()]


def living(pids: Iterable[int]) -> list[int]:
    """A process that nobody has reaped yet is a zombie, and dead."""
    return [
        process.pid
        for process in psutil.process_iter(["status"])
        if process.pid in set(pids) and process.info["status"] != psutil.STATUS_ZOMBIE
    ]


@retry(wait=wait_fixed(0.02), stop=stop_after_delay(20), retry=retry_if_result(lambda holds: not holds))
def wait_until(condition: Callable[[], bool]) -> bool:
    return condition()


def test_each_node_has_its_own_hostname_home_and_processes(lab: Lab) -> None:
    for name, node in lab.nodes.items():
        assert lab.ssh(name, "hostname").stdout == f"{name}\n"
        lab.ssh(name, "hostname >~/who")
        assert (node.home / "who").read_text() == f"{name}\n"
        processes = node.processes()
        assert processes[0].pid == 1
        assert all("sshd" in process.argv[0] for process in processes)


def test_each_node_runs_its_own_build(lab: Lab) -> None:
    for name, build in {"head": "b10434", "worker": "b10068"}.items():
        said = lab.ssh(name, f"{LLAMA}/llama-server --version").stderr
        assert f"{BUILDS[build].commit}" in said


def test_the_model_is_there_on_request_and_read_only(lab: Lab) -> None:
    assert lab.ssh("head", f"head -c 4 {lab.model_path}").stdout == "GGUF"
    assert lab.ssh("head", "touch /models/x", check=False).returncode != 0
    assert lab.ssh("worker", "test -e /models", check=False).returncode != 0


def test_what_a_node_writes_is_not_on_the_machine(lab: Lab) -> None:
    lab.ssh("head", "echo mine >/tmp/lab-marker; mkdir /opt/lab-marker")
    assert not Path("/tmp/lab-marker").exists()
    assert not Path("/opt/lab-marker").exists()
    assert lab.ssh("worker", "test -e /tmp/lab-marker", check=False).returncode != 0


def test_an_unknown_host_key_is_refused(lab: Lab) -> None:
    known_hosts = lab.ssh_home / ".ssh" / "known_hosts"
    right = known_hosts.read_text()
    known_hosts.write_text(right.replace(lab.nodes["head"].host_key, lab.nodes["worker"].host_key))
    try:
        with pytest.raises(LabError, match="Host key verification failed"):
            lab.ssh("head", "true")
    finally:
        known_hosts.write_text(right)
    lab.ssh("head", "true")


def test_nodes_reach_each_other_on_both_networks_and_the_machine_on_the_public_one(lab: Lab) -> None:
    worker = lab.nodes["worker"]
    with lab.nodes["head"].network():
        assert reaches(worker.public_address)
        assert reaches(worker.private_address)
    assert reaches(worker.public_address)
    assert not reaches(worker.private_address)


def test_a_worker_is_seen_where_it_listens(lab: Lab) -> None:
    worker = lab.nodes["worker"]
    address = worker.private_address
    lab.ssh("worker", f"nohup {LLAMA}/ggml-rpc-server -H {address} -p {RPC_PORT} >log 2>&1 </dev/null &")
    wait_until(lambda: Listener(address, RPC_PORT) in worker.listeners())
    assert worker.listeners() == [Listener("0.0.0.0", SSH_PORT), Listener(address, RPC_PORT)]
    assert f"{LLAMA}/ggml-rpc-server" in [process.argv[0] for process in worker.processes()]
    with lab.nodes["head"].network():
        assert reaches(address, RPC_PORT)
        assert not reaches(worker.public_address, RPC_PORT)


def test_a_cut_link_is_silent_and_can_be_restored(bare_lab: Lab) -> None:
    node = bare_lab.nodes["a"]
    node.cut_link(["private"])
    assert reaches(node.public_address)
    with bare_lab.nodes["b"].network():
        assert not reaches(node.private_address)
    node.cut_link()
    assert not reaches(node.public_address)
    node.restore_link()
    assert reaches(node.public_address)
    with bare_lab.nodes["b"].network():
        assert reaches(node.private_address)


def test_a_limited_link_takes_its_time(bare_lab: Lab) -> None:
    bare_lab.nodes["a"].limit_link(mbit=10)
    started = time.monotonic()
    bare_lab.ssh("a", "head -c 1000000 /dev/zero")
    assert time.monotonic() - started > 0.6  # 0.8 s, less what the bucket lets through at once
    bare_lab.nodes["a"].restore_link()


def test_a_limited_processor_takes_its_time(bare_lab: Lab) -> None:
    bare_lab.nodes["a"].limit_cpu(0.2)
    started = time.monotonic()
    used = bare_lab.ssh("a", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; cat /proc/$$/stat").stdout.split()
    user_ticks, system_ticks = int(used[13]), int(used[14])
    used_s = (user_ticks + system_ticks) / os.sysconf("SC_CLK_TCK")
    assert used_s > 0.05
    assert time.monotonic() - started > used_s / 0.2 * 0.6


def test_a_power_loss_is_silent_and_the_node_comes_back_with_its_home(bare_lab: Lab) -> None:
    node = bare_lab.nodes["a"]
    bare_lab.ssh("a", "echo kept >~/kept; echo lost >/tmp/lost")
    boot_id = node.run(["cat", "/proc/sys/kernel/random/boot_id"]).stdout
    pids = machine_pids(bare_lab)
    with socket.create_connection((node.public_address, SSH_PORT), timeout=0.5) as connection:
        assert connection.recv(100).startswith(b"SSH-")
        node.power_off()
        with pytest.raises(TimeoutError):
            connection.recv(100)
    assert not reaches(node.public_address)
    assert not living(pids[:1])
    with pytest.raises(LabError, match="a is powered off"):
        node.processes()
    assert reaches(bare_lab.nodes["b"].public_address)

    node.power_on()
    assert bare_lab.ssh("a", "cat ~/kept; ls /tmp").stdout == "kept\n"
    assert node.run(["cat", "/proc/sys/kernel/random/boot_id"]).stdout != boot_id


def test_sixteen_nodes_start(make_lab: MakeLab) -> None:
    names = [f"node{number}" for number in range(16)]
    with make_lab([NodeSpec(name) for name in names]) as lab, ThreadPoolExecutor(len(names)) as pool:
        answers = pool.map(lambda name: lab.ssh(name, "hostname").stdout.strip(), names)
        assert list(answers) == names


def test_a_node_that_cannot_boot_says_why_at_once(require_lab: None) -> None:
    with pytest.raises(LabError, match=r"(?s)broken: did not boot.*Read-only file system"):
        Lab([NodeSpec("broken", bin_dir="/usr/nowhere")])


def test_two_labs_stand_side_by_side_and_leave_nothing(require_lab: None) -> None:
    with Lab([NodeSpec("same", build=None)]) as one, Lab([NodeSpec("same", build=None)]) as other:
        other.nodes["same"].limit_cpu(0.5)
        assert one.ssh("same", "echo $SSH_CONNECTION").stdout != other.ssh("same", "echo $SSH_CONNECTION").stdout
        pids = machine_pids(one) + machine_pids(other)
        before = traces(one.slot, "same") | traces(other.slot, "same")
        assert len(before) == 4 + 5  # the second has a control group as well
    assert before.isdisjoint(traces(one.slot, "same") | traces(other.slot, "same"))
    assert not living(pids)


ABANDON = """
import os, signal, sys
from tests.lab.lab import Lab, NodeSpec

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
lab = Lab([NodeSpec("abandoned", build=None)])
print(lab.slot.number, *[process.machine_pid for process in lab.nodes["abandoned"].processes()], flush=True)
os.kill(os.getpid(), int(sys.argv[1]))
"""


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_an_abandoned_lab_leaves_nothing(require_lab: None, end: signal.Signals) -> None:
    child = subprocess.run(
        [sys.executable, "-c", ABANDON, str(int(end))], capture_output=True, text=True, check=False
    )
    assert child.returncode == -end
    number, *pids = map(int, child.stdout.split())
    with Lab([NodeSpec("next", build=None)]):
        assert not Path(f"/run/netns/clab{number}-node-abandoned").exists()
        assert not Path(f"/var/lib/clusterctl-lab-{number}/abandoned").exists()
        wait_until(lambda: not living(pids))
