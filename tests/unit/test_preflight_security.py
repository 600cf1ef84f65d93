"""What is open to whom: the head beyond its own machine, RPC on public networks, secrets in a plan."""

from __future__ import annotations

import pytest

from clusterctl.cluster.endpoint import rpc_address
from clusterctl.cluster.launch import expected_names, head_settings
from clusterctl.cluster.preflight import judge_node
from clusterctl.config.inventory import Inventory
from clusterctl.llama.flags import spell
from clusterctl.model import Memory, Problem, Severity, Split
from tests.unit.cluster_samples import NODES, RECIPE, address_row, facts, inventory, recipe

ALONE = Split(strategy="memory", n_layer=16, shares=(), unused=(), host=Memory())


def head_problems(server: str, of_node: str = "") -> dict[str, Problem]:
    text = NODES.replace("role: head}", f"role: head, {of_node}}}") if of_node else NODES
    known = inventory(text)
    asked = recipe(f"{RECIPE}server: {{{server}}}\n")
    found = judge_node(known, asked, known.head, facts("head"))
    return {problem.code: problem for problem in found}


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.30", "head.lan"])
def test_a_head_open_to_others_without_a_key_is_warned_of(host: str) -> None:
    problem = head_problems(f"host: {host}")["open-without-key"]
    assert problem.severity is Severity.WARNING
    assert f"{host}:8080" in problem.message


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.5", "localhost", "::1"])
def test_a_head_for_its_own_machine_needs_no_key(host: str) -> None:
    assert "open-without-key" not in head_problems(f'host: "{host}"')


def test_a_key_by_file_or_by_environment_will_do() -> None:
    assert "open-without-key" not in head_problems("host: 0.0.0.0, api_key_file: ~/key")
    assert "open-without-key" not in head_problems("host: 0.0.0.0", "env: {LLAMA_API_KEY: sk-x}")
    assert "open-without-key" in head_problems("host: 0.0.0.0", 'env: {LLAMA_API_KEY: ""}')


def test_a_missing_key_file_is_not_taken_for_a_model() -> None:
    known, asked = inventory(), recipe(RECIPE + "server: {api_key_file: /etc/key}\n")
    own = facts(
        "head", asked_files=("/models/demo.gguf", "/etc/key"), files="1000 1 /models/demo.gguf\nmissing /etc/key\n"
    )
    (problem,) = judge_node(known, asked, known.head, own)
    assert (problem.code, problem.severity) == ("file-missing", Severity.ERROR)
    assert "server" in problem.hint


def on_interface() -> Inventory:
    return inventory(NODES.replace("{name: w1, role: worker}", "{name: w1, role: worker, rpc: {interface: wan0}}"))


@pytest.mark.parametrize("public", ["8.8.8.8", "203.0.113.7", "172.32.0.1", "100.128.0.1"])
def test_rpc_on_a_public_interface_is_refused(public: str) -> None:
    found = rpc_address(
        on_interface(), on_interface().node("w1"), facts("w1", addresses=address_row(public, "wan0"))
    )
    assert isinstance(found, Problem)
    assert (found.code, found.severity) == ("address-public", Severity.ERROR)


def test_of_an_interface_with_a_public_and_a_private_address_the_private_one_is_taken() -> None:
    rows = address_row("8.8.8.8", "wan0") + address_row("10.10.0.21", "wan0")
    assert rpc_address(on_interface(), on_interface().node("w1"), facts("w1", addresses=rows)) == "10.10.0.21"


def test_tls_is_told_to_the_head_with_its_own_files() -> None:
    asked = recipe(RECIPE + "server: {tls: {key_file: ~/tls.key, cert_file: /etc/tls.pem}}\n")
    own = facts("head")
    assert own.flags is not None
    argv = spell(own.flags, head_settings(asked, own, ALONE, expected_names(ALONE), draft_device=None))
    assert argv[argv.index("--ssl-key-file") + 1] == "/home/ops/tls.key"
    assert argv[argv.index("--ssl-cert-file") + 1] == "/etc/tls.pem"
