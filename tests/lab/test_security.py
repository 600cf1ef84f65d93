"""What others on the machines and networks of a real cluster can see, reach and do: nothing."""

from __future__ import annotations

import os
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.lab.conftest import MakeLab
from tests.lab.lab import Lab, NodeSpec
from tests.lab.operator import HTTP_PORT, Operator, operator_of, remains
from tests.lab.test_serving import QUESTION
from tests.ssh.certificates import make_certificate

KEY = "sk-lab-0123456789abcdef"
KEY_FILE = "/root/keys"


@pytest.fixture(scope="module")
def lab(make_lab: MakeLab) -> Lab:
    return make_lab([NodeSpec("head", models=True), NodeSpec("worker")])


@pytest.fixture
def operator(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    yield operator_of(lab, tmp_path_factory.mktemp("operator"), workers=["worker"])
    assert remains(lab) == {}


def open_to_all(operator: Operator, **server: object) -> Operator:
    """A head that listens on every network, as one that serves a team does."""
    return operator.with_recipe(server={**operator.recipe["server"], "host": "0.0.0.0", **server})


def ask_from_outside(lab: Lab, key: str | None) -> int:
    """Ask from a machine that is not the head; return the HTTP status."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    url = f"http://{lab.nodes['head'].public_address}:{HTTP_PORT}/completion"
    return httpx.post(url, json=QUESTION, headers=headers, timeout=60).status_code


def test_files_of_a_cluster_are_for_their_user_alone(lab: Lab, operator: Operator) -> None:
    operator.with_node("worker", rpc={"cache": True}).succeed("up")
    open_entries = [
        str(entry)
        for node in lab.nodes.values()
        for top in (node.home / ".local/state/clusterctl", node.home / ".cache/clusterctl")
        for entry in [top, *top.rglob("*")]
        if entry.exists() and not entry.is_symlink() and stat.S_IMODE(entry.stat().st_mode) & 0o077
    ]
    assert open_entries == []
    operator.succeed("down", "--purge-cache")


def test_an_open_head_without_a_key_is_warned_of_and_starts(lab: Lab, operator: Operator) -> None:
    careless = open_to_all(operator)
    problems = careless.succeed("check", "--json").document["nodes"][1]["problems"]
    grave = [(problem["code"], problem["severity"]) for problem in problems if problem["severity"] != "note"]
    assert grave == [("open-without-key", "warning")]
    assert "! open-without-key  head" in careless.succeed("up").stderr
    assert ask_from_outside(lab, None) == 200
    careless.succeed("down")


@pytest.mark.parametrize("by", ["file", "environment"])
def test_a_key_is_asked_for_and_shown_nowhere(lab: Lab, operator: Operator, by: str, tmp_path: Path) -> None:
    head = lab.nodes["head"]
    (head.home / "keys").write_text(f"# of the team\n{KEY}\n")
    if by == "file":
        locked = open_to_all(operator, api_key_file=KEY_FILE)
    else:
        locked = open_to_all(operator.with_node("head", env={"LLAMA_API_KEY": KEY}))
    shown = [locked.succeed(*command) for command in (("check",), ("plan",), ("plan", "--json"), ("up",))]
    assert "open-without-key" not in "".join(each.stdout + each.stderr for each in shown)
    assert (ask_from_outside(lab, None), ask_from_outside(lab, "sk-wrong")) == (401, 401)
    assert ask_from_outside(lab, KEY) == 200
    shown += [
        locked.succeed(*command) for command in (("status",), ("status", "--json"), ("logs", "-n", "100000"))
    ]
    assert not any(KEY in each.stdout + each.stderr for each in shown)
    assert not any(KEY in " ".join(process.argv) for node in lab.nodes.values() for process in node.processes())
    locked.succeed("logs", "--bundle", str(tmp_path / "bundle.tar.gz"))
    with tarfile.open(tmp_path / "bundle.tar.gz") as archive:
        members = [archive.extractfile(member) for member in archive.getmembers()]
        assert not any(KEY.encode() in content.read() for content in members if content)
    locked.succeed("down")
    (head.home / "keys").unlink()


def test_a_missing_key_file_keeps_the_head_from_starting(operator: Operator) -> None:
    refused = open_to_all(operator, api_key_file="/root/none").run("up")
    assert refused.exit_code == 6
    assert "/root/none is missing on the head" in refused.stderr


def test_rpc_is_never_started_on_a_public_address(lab: Lab, operator: Operator) -> None:
    lab.nodes["worker"].run(["ip", "link", "add", "wan0", "type", "veth", "peer", "name", "wan1"])
    lab.nodes["worker"].run(["ip", "address", "add", "203.0.113.8/24", "dev", "wan0"])
    refused = operator.with_node("worker", rpc={"interface": "wan0"}).run("up")
    assert refused.exit_code == 6
    assert "wan0 is on a public network: it has 203.0.113.8" in refused.stderr
    lab.nodes["worker"].run(["ip", "link", "delete", "wan0"])


def test_a_build_without_tls_is_told_as_such(lab: Lab, operator: Operator) -> None:
    home = lab.nodes["head"].home
    certificate, key = make_certificate(home, "head")
    tls = {"key_file": "~/head.key", "cert_file": "~/head.pem"}
    secure = operator.with_recipe(server={**operator.recipe["server"], "tls": tls})
    argv = secure.succeed("plan", "--json").document["commands"][-1]["argv"]
    assert argv[argv.index("--ssl-cert-file") + 1] == "/root/head.pem"
    refused = secure.run("up")
    assert refused.exit_code == 6
    assert "llama-server was built without TLS" in refused.stderr
    certificate.unlink()
    key.unlink()


def test_names_that_a_machine_gives_itself_and_its_devices_neither_act_nor_pass_for_markup(
    lab: Lab, operator: Operator
) -> None:
    """A worker program that lies about its devices."""
    folder = lab.nodes["worker"].home / "liar"
    folder.mkdir()
    real = "/opt/llama.cpp/bin"
    liar = folder / "ggml-rpc-server"
    name = r"\033]0;owned\007[red]CPU[/]\033[2J"
    liar.write_text(
        f'#!/bin/sh\n[ "$2" = no-such-device ] || exec {real}/ggml-rpc-server "$@"\n'
        f"printf 'available devices:\\n  CPU: {name} (4096 MiB, 4096 MiB free)\\n'; exit 1\n"
    )
    liar.chmod(0o755)
    os.symlink(f"{real}/llama-server", folder / "llama-server")
    lied_to = operator.with_node("worker", llama={"bin_dir": "/root/liar"}, backend="cpu")
    for command in (("check", "-v"), ("plan",)):
        shown = lied_to.run("--color", "never", *command)
        assert "\033" not in shown.stdout + shown.stderr
        assert "\007" not in shown.stdout + shown.stderr
    assert "[red]CPU[/]" in lied_to.run("check", "-v").stdout
    remove(folder)


def remove(folder: Path) -> None:
    for entry in folder.iterdir():
        entry.unlink()
    folder.rmdir()
