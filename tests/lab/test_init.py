"""`clusterctl init` on real machines: one look at each, and an inventory that `check` passes."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.lab.conftest import MakeLab
from tests.lab.lab import Lab, NodeSpec
from tests.lab.operator import CLUSTERCTL, TIMEOUT_S, Finished


@dataclass(frozen=True, slots=True)
class Desk:
    """A person at an empty desk: a lab to reach, and a directory to write to."""

    lab: Lab
    folder: Path

    def run(self, *arguments: str, stdin: int = subprocess.DEVNULL) -> Finished:
        """Run one command of clusterctl in the directory."""
        done = subprocess.run(
            [CLUSTERCTL, *arguments],
            cwd=self.folder,
            stdin=stdin,
            capture_output=True,
            text=True,
            env={**self.lab.environment, "COLUMNS": "200"},
            timeout=TIMEOUT_S,
            check=False,
        )
        return Finished(done.returncode, done.stdout, done.stderr)

    def answer(self, answers: Sequence[str], *arguments: str) -> Finished:
        """Run one command and type the answers to what it asks."""
        keyboard, terminal = pty.openpty()
        try:
            os.write(keyboard, "".join(f"{answer}\n" for answer in answers).encode())
            return self.run(*arguments, stdin=terminal)
        finally:
            os.close(keyboard)
            os.close(terminal)

    def init(self, *arguments: str) -> dict[str, Any]:
        """Run `init`, which must exit 0, and return its document."""
        done = self.run("init", *arguments, "--json")
        assert done.exit_code == 0, done.stderr
        return done.document

    def written(self, name: str) -> dict[str, Any]:
        """An inventory that was written."""
        inventory = yaml.safe_load((self.folder / name).read_text())
        assert isinstance(inventory, dict)
        return inventory

    def sessions(self) -> dict[str, int]:
        """How many commands each node has run for anybody so far."""
        return {name: node.sshd_log.count("Starting session: ") for name, node in self.lab.nodes.items()}


@pytest.fixture(scope="module")
def lab(make_lab: MakeLab) -> Lab:
    specs = [
        NodeSpec("desk", models=True),
        NodeSpec("strix1"),
        NodeSpec("strix2"),
        NodeSpec("old", build="b10068"),
    ]
    return make_lab(specs)


@pytest.fixture
def desk(lab: Lab, tmp_path: Path) -> Desk:
    return Desk(lab, tmp_path)


def test_the_written_inventory_passes_check(desk: Desk) -> None:
    document = desk.init("desk", "strix1", "strix2")
    assert (document["ok"], document["path"], document["head"]) == (True, "homelab.yaml", "desk")
    assert document["network"] == desk.lab.slot.subnet("private")
    assert document["skew"]["status"] == "match"
    assert desk.run("-i", "homelab.yaml", "check").exit_code == 0


def test_what_init_foresees_is_what_check_finds(desk: Desk) -> None:
    foreseen = desk.init("desk", "strix1", "old")
    found = desk.run("-i", "homelab.yaml", "check", "--json")
    assert found.exit_code == 4
    assert foreseen["skew"] == found.document["skew"]
    seen = ("name", "role", "build", "programs", "rpc_address", "problems")
    assert [[node[key] for key in seen] for node in foreseen["nodes"]] == [
        [node[key] for key in seen] for node in found.document["nodes"]
    ]


def test_people_see_the_reasons_the_skew_and_the_next_command(desk: Desk) -> None:
    done = desk.run("init", "desk", "strix1", "old", "--yes", "-o", "lab.yaml")
    assert done.exit_code == 0
    assert f"desk is the head: it holds a model file (0.1 GiB, {Lab.model_path})" in done.stdout
    assert (
        f"network {desk.lab.slot.subnet('private')} (virtual link): the fastest that all nodes share"
        in done.stdout
    )
    assert "as fast, but SSH comes by it" in done.stdout
    assert "old, files: mismatch: the worker's library names commit 571d0d5, not 7e4c0a9" in done.stdout
    assert done.stdout.endswith("clusterctl -i lab.yaml check\n")


def test_the_user_decides_over_head_network_user_and_port(desk: Desk) -> None:
    public = desk.lab.slot.subnet("public")
    place = f"root@{desk.lab.nodes['strix1'].public_address}:22"
    document = desk.init("desk", place, "--head", place, "--network", public, "--cluster", "attic")
    assert (document["head"], document["network"]) == ("strix1", public)
    node = desk.written("attic.yaml")["nodes"][1]
    assert (node["name"], node["role"], node["ssh"]) == ("strix1", "head", {"user": "root", "port": 22})
    assert desk.run("-i", "attic.yaml", "check").exit_code == 0


def test_an_inventory_directory_is_used_where_there_is_one(desk: Desk) -> None:
    (desk.folder / "inventory").mkdir()
    assert desk.init("desk", "strix1")["path"] == "inventory/homelab.yaml"
    again = desk.run("init", "desk", "--yes")
    assert (again.exit_code, "inventory/homelab.yaml exists" in again.stderr) == (2, True)
    assert desk.init("desk", "--force")["nodes"][0]["name"] == "desk"
    assert len(desk.written("inventory/homelab.yaml")["nodes"]) == 1


def test_a_host_that_does_not_answer_leaves_nothing_written(desk: Desk) -> None:
    done = desk.run("init", "desk", "nobody.invalid", "--yes")
    assert done.exit_code == 3
    assert "nobody.invalid: can't connect" in done.stderr
    assert "nothing was written" in done.stderr
    assert not list(desk.folder.iterdir())
    document = desk.run("init", "desk", "nobody.invalid", "--json").document
    assert (document["ok"], document["error"]["exit_code"]) == (False, 3)


def test_one_machine_under_two_names_is_refused(desk: Desk) -> None:
    address = desk.lab.nodes["desk"].public_address
    done = desk.run("init", "desk", address, "--yes")
    assert (done.exit_code, f"desk and {address} are one machine" in done.stderr) == (2, True)
    assert not list(desk.folder.iterdir())


def test_it_asks_for_the_name_and_for_the_head_only_between_equals(desk: Desk) -> None:
    done = desk.answer(["attic", "strix2"], "init", "strix1", "strix2")
    assert done.exit_code == 0
    assert "Name of the cluster [homelab]" in done.stderr
    assert "Which node has the model file and is the head?" in done.stderr
    assert [node["role"] for node in desk.written("attic.yaml")["nodes"]] == ["worker", "head"]

    done = desk.answer(["cellar"], "init", "strix1", "desk")
    assert done.exit_code == 0
    assert "Which node" not in done.stderr
    assert [node["role"] for node in desk.written("cellar.yaml")["nodes"]] == ["worker", "head"]


def test_sixteen_nodes_take_one_round_trip_each(make_lab: MakeLab, tmp_path: Path) -> None:
    names = [f"node{number:02}" for number in range(16)]
    with make_lab([NodeSpec(name, models=name == "node07") for name in names]) as lab:
        desk = Desk(lab, tmp_path)
        document = desk.init(*names)
        assert desk.sessions() == dict.fromkeys(names, 1)
        assert document["head"] == "node07"
        assert [node["name"] for node in document["nodes"]] == names
        checked = desk.run("-i", "homelab.yaml", "check", "--json")
        assert (checked.exit_code, json.loads(checked.stdout)["ok"]) == (0, True)
