"""Logs of a real cluster: shown, followed, cut by time, diagnosed and bundled."""

from __future__ import annotations

import json
import os
import signal
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.conftest import MakeLab
from tests.lab.lab import Lab, NodeSpec
from tests.lab.operator import Operator, operator_of, remains
from tests.lab.test_lab_itself import wait_until
from tests.lab.test_serving import ask

HOSTILE = "\033]0;owned\007\033[2J[bold red]not red[/] \u202etxt.exe\n"


@pytest.fixture(scope="module")
def lab(make_lab: MakeLab) -> Lab:
    return make_lab([NodeSpec("head", models=True), NodeSpec("left"), NodeSpec("right")])


@pytest.fixture(scope="module")
def operator(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    """An operator whose cluster is up."""
    operator = operator_of(lab, tmp_path_factory.mktemp("operator"), workers=["left", "right"])
    operator.succeed("up")
    yield operator
    operator.succeed("down")
    assert remains(lab) == {}


def log_of(lab: Lab, node: str) -> Path:
    return lab.nodes[node].home / ".local/state/clusterctl/lab/nodes" / node / "log"


def test_since_shows_what_was_logged_from_then_on(lab: Lab, operator: Operator) -> None:
    ask(lab)
    everything = operator.succeed("logs", "head", "--since", "1h", "--json").document["lines"]
    texts = [line["text"] for line in everything]
    assert texts == log_of(lab, "head").read_text().splitlines()
    assert (
        operator.succeed("logs", "head", "--since", "1h", "-n", "3", "--json").document["lines"] == everything[-3:]
    )
    assert operator.succeed("logs", "head", "--since", "2099-01-01", "--json").document["lines"] == []
    workers = operator.succeed("logs", "left", "right", "--since", "2099-01-01", "--json").document["lines"]
    assert len(workers) == sum(len(log_of(lab, name).read_text().splitlines()) for name in ("left", "right"))
    assert operator.run("logs", "--since", "yesterday").exit_code == 2


def test_a_healthy_cluster_has_no_cause(operator: Operator) -> None:
    assert operator.succeed("logs", "--json").document["cause"] is None
    assert "likely cause" not in operator.succeed("logs").stderr


def test_a_node_out_of_reach_does_not_hide_the_others(lab: Lab, operator: Operator) -> None:
    lab.nodes["left"].cut_link(["public"])
    shown = operator.with_node("left", ssh={"connect_timeout": 2}).run("logs", "-n", "2")
    lab.nodes["left"].restore_link(["public"])
    assert shown.exit_code == 3
    assert {line.split()[0] for line in shown.stdout.splitlines()} == {"head", "right"}
    assert "left: can't connect" in shown.stderr


def test_following_goes_on_over_a_log_that_is_cut_and_one_that_is_new(lab: Lab, operator: Operator) -> None:
    log = log_of(lab, "left")
    add(log, "begin\n")
    with operator.running("logs", "left", "-f", "-n", "1") as following:
        wait_until(lambda: "begin" in following.printed)
        add(log, "before\n")
        wait_until(lambda: "before" in following.printed)
        # As the keeper of the log cuts it.
        (log.parent / "log.old").write_text(log.read_text())
        (log.parent / "log.start").write_text(f"{log.stat().st_size}\n")
        os.truncate(log, 0)
        add(log, "after\n")
        wait_until(lambda: "after" in following.printed)
        os.truncate(log, 0)
        (log.parent / "log.old").unlink()
        (log.parent / "log.start").write_text("0\n")
        add(log, "new\n")
        wait_until(lambda: "new" in following.printed)
        lines = [line.split("│ ")[1] for line in following.printed.splitlines()]
        assert following.interrupt().exit_code == 0
    assert lines == ["begin", "before", "after", "new"]


def add(log: Path, text: str) -> None:
    with log.open("a") as file:
        file.write(text)


def test_text_from_a_node_neither_acts_on_the_terminal_nor_passes_for_markup(lab: Lab, operator: Operator) -> None:
    add(log_of(lab, "left"), HOSTILE)
    shown = operator.succeed("--color", "always", "logs", "left", "-n", "1")
    text = (
        shown.stdout.replace("\033[36m", "").replace("\033[35m", "").replace("\033[0m", "").replace("\033[39m", "")
    )
    assert r"\x1b]0;owned\x07\x1b[2J[bold red]not red[/] \u202etxt.exe" in text
    assert "\033" not in text
    assert operator.succeed("logs", "left", "-n", "1", "--json").document["lines"][0]["text"] == HOSTILE.rstrip()


def unpack(file: Path) -> dict[str, str]:
    with tarfile.open(file) as archive:
        members = archive.getmembers()
        assert {member.mode for member in members} == {0o600}
        read = {member.name.partition("/")[2]: archive.extractfile(member) for member in members}
        return {name: content.read().decode() for name, content in read.items() if content}


def test_a_bundle_holds_what_somebody_who_helps_must_know(lab: Lab, operator: Operator, tmp_path: Path) -> None:
    file = tmp_path / "bundle.tar.gz"
    assert str(file) in operator.succeed("logs", "--bundle", str(file)).stdout
    assert file.stat().st_mode & 0o777 == 0o600
    parts = unpack(file)
    documents = {name: json.loads(text) for name, text in parts.items() if name.endswith(".json")}
    assert documents["errors.json"] == {}
    assert documents["version.json"]["clusterctl"]
    assert documents["check.json"]["ok"] is True
    assert documents["status.json"]["state"] == "up"
    assert documents["plan.json"]["fits"] is True
    assert [own["build"]["commit"] for own in documents["facts.json"]] == ["7e4c0a9"] * 3
    assert documents["recipe.json"]["name"] == "smollm2"
    assert parts["logs/head.log"] == log_of(lab, "head").read_text()
    assert {"logs/left.log", "logs/right.log", "inventory.json", "cause.json"} <= parts.keys()

    again = operator.run("logs", "--bundle", str(file))
    assert again.exit_code == 2
    assert "is there already" in again.stderr
    assert operator.run("logs", "--bundle", str(tmp_path / "none" / "bundle.tar.gz")).exit_code == 2


def test_a_masked_bundle_names_neither_machines_nor_addresses(
    lab: Lab, operator: Operator, tmp_path: Path
) -> None:
    file = tmp_path / "bundle.tar.gz"
    secret = operator.with_node("left", env={"HF_TOKEN": "do-not-show-me"}, labels={"site": "attic"})
    document = secret.succeed("logs", "--bundle", str(file), "--mask", "--json").document
    parts = unpack(file)
    assert tuple(document["members"]) == tuple(parts)
    assert "logs/node-1.log" in parts
    everything = "\n".join(parts.values())
    for node in lab.nodes.values():
        for word in (node.public_address, node.private_address):
            assert word not in everything
    for word in ("do-not-show-me", "attic", '"left"'):
        assert word not in everything
    assert "node-1-address-" in parts["logs/head.log"]


def test_a_bundle_can_be_made_of_a_cluster_that_is_broken(lab: Lab, operator: Operator, tmp_path: Path) -> None:
    lab.nodes["left"].cut_link(["public"])
    broken = operator.with_node("left", ssh={"connect_timeout": 2})
    file = tmp_path / "bundle.tar.gz"
    broken.succeed("logs", "--bundle", str(file))
    lab.nodes["left"].restore_link(["public"])
    parts = unpack(file)
    errors = json.loads(parts["errors.json"])
    assert "can't connect" in errors["plan"]
    assert "can't connect" in errors["logs of left"]
    assert {"logs/head.log", "logs/right.log", "check.json", "status.json"} <= parts.keys()


def test_the_likely_cause_of_a_failure_is_told_on_stderr(lab: Lab, operator: Operator) -> None:
    worker = next(process for process in lab.nodes["right"].processes() if "rpc-server" in process.argv[0])
    os.kill(worker.machine_pid, signal.SIGKILL)
    wait_until((log_of(lab, "right").parent / "exit").exists)
    shown = operator.succeed("logs")
    assert "likely cause: right: " in shown.stderr
    assert "hint: " in shown.stderr
    assert "likely cause" not in shown.stdout
    assert operator.succeed("logs", "--json").document["cause"]["node"] == "right"
    operator.succeed("up", "--replace")
