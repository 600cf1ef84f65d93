"""Ways to a node that are barred, roundabout or noisy: host keys, keys, jump hosts, login shells."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.lab.conftest import MakeLab
from tests.lab.lab import Lab, NodeSpec
from tests.lab.node import Node
from tests.lab.operator import Operator, operator_of, remains
from tests.lab.system import run, tool


@pytest.fixture(scope="module")
def lab(make_lab: MakeLab) -> Lab:
    return make_lab([NodeSpec("head", models=True), NodeSpec("worker")])


@pytest.fixture
def operator(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    yield operator_of(lab, tmp_path_factory.mktemp("operator"), workers=["worker"])
    assert remains(lab) == {}


@contextmanager
def changed(file: Path, text: str) -> Iterator[None]:
    """A file holds this text for a while."""
    before = file.read_text() if file.exists() else None
    file.write_text(text)
    try:
        yield
    finally:
        if before is None:
            file.unlink()
        else:
            file.write_text(before)


def with_shell(node: Node, shell: str) -> str:
    """The node's passwd with another login shell for root."""
    return (node.directory / "passwd").read_text().replace(":/root:/bin/sh", f":/root:{shell}")


def fingerprint(node: Node) -> str:
    """The fingerprint of its host key, as ssh-keygen tells it."""
    return run([tool("ssh-keygen"), "-lf", str(node.directory / "host_key.pub")]).stdout.split()[1]


def assert_unreachable(operator: Operator, *reasons: str) -> None:
    for command in ("check", "up"):
        done = operator.run(command)
        assert done.exit_code == 3
        for reason in ("worker", *reasons):
            assert reason in done.stdout + done.stderr
    assert remains(operator.lab) == {}


def test_an_unknown_host_key_is_shown_and_not_trusted(lab: Lab, operator: Operator) -> None:
    known_hosts, worker = lab.ssh_home / ".ssh" / "known_hosts", lab.nodes["worker"]
    without = "".join(f"{node.public_address} {node.host_key}\n" for node in [lab.nodes["head"]])
    with changed(known_hosts, without):
        assert_unreachable(operator, "not known", fingerprint(worker), "ssh-keyscan", worker.public_address)
        assert known_hosts.read_text() == without
    operator.succeed("check")


def test_the_way_out_that_is_named_for_an_unknown_key_works(lab: Lab, operator: Operator) -> None:
    known_hosts = lab.ssh_home / ".ssh" / "known_hosts"
    with changed(known_hosts, ""):
        hints = [line for line in operator.run("up").stderr.splitlines() if "ssh-keyscan" in line]
        assert len(hints) == len(lab.nodes)
        for hint in hints:
            run(["sh", "-c", hint[hint.index("ssh-keyscan") :]], env=lab.environment)
        operator.succeed("check")


def test_a_changed_host_key_is_called_changed(lab: Lab, operator: Operator) -> None:
    known_hosts, worker = lab.ssh_home / ".ssh" / "known_hosts", lab.nodes["worker"]
    wrong = known_hosts.read_text().replace(worker.host_key, lab.nodes["head"].host_key)
    with changed(known_hosts, wrong):
        assert_unreachable(operator, "CHANGED", fingerprint(worker), "ssh-keygen -R")


def test_a_key_that_the_node_does_not_accept(lab: Lab, operator: Operator, tmp_path: Path) -> None:
    run([tool("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "stranger")])
    stranger = operator.with_node("worker", ssh={"identity_file": str(tmp_path / "stranger")})
    assert_unreachable(stranger, "Permission denied", "ssh-copy-id")


def test_a_name_that_nobody_knows(operator: Operator) -> None:
    assert_unreachable(operator.with_node("worker", host="no-such-host.invalid"), "no-such-host.invalid")


def test_a_port_on_which_nothing_listens(operator: Operator) -> None:
    assert_unreachable(operator.with_node("worker", ssh={"port": 2222}))


def test_a_login_shell_that_runs_nothing_is_explained(lab: Lab, operator: Operator) -> None:
    worker = lab.nodes["worker"]
    with changed(worker.directory / "passwd", with_shell(worker, "/usr/sbin/nologin")):
        assert_unreachable(operator, "login shell")


def test_a_noisy_login_shell_does_not_matter(lab: Lab, operator: Operator) -> None:
    worker = lab.nodes["worker"]
    noise = "echo welcome to the worker; printf '%s' 'no end of line'; echo and a warning >&2\n"
    with (
        changed(worker.directory / "passwd", with_shell(worker, "/bin/bash")),
        changed(worker.home / ".bashrc", noise),
        changed(worker.home / ".profile", noise),
    ):
        assert "welcome" in lab.ssh("worker", "true").stdout
        operator.succeed("up")
        assert operator.status()["state"] == "up"
        operator.succeed("down")


def test_a_node_behind_another_is_reached_by_its_alias(lab: Lab, operator: Operator) -> None:
    worker, config = lab.nodes["worker"], lab.ssh_home / ".ssh" / "config"
    hidden = f"Host hidden\n  HostName {worker.private_address}\n  ProxyJump head\n"
    known_hosts = lab.ssh_home / ".ssh" / "known_hosts"
    known = f"{known_hosts.read_text()}{worker.private_address} {worker.host_key}\n"
    behind = operator.with_node("worker", host="hidden")
    with changed(config, hidden + config.read_text()), changed(known_hosts, known):
        worker.cut_link(["public"])
        try:
            assert operator.with_node("worker", ssh={"connect_timeout": 1}).run("check").exit_code == 3
            behind.succeed("up")
            assert behind.status()["state"] == "up"
            behind.succeed("down")
        finally:
            worker.restore_link()


def test_every_node_that_fails_is_named_with_its_own_reason(operator: Operator) -> None:
    broken = operator.with_node("worker", host="no-such-host.invalid").with_node("head", ssh={"port": 2222})
    failed = broken.run("up")
    assert failed.exit_code == 3
    assert "error: worker: " in failed.stderr
    assert "error: head: " in failed.stderr
