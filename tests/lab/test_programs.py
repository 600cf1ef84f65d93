"""Finding llama.cpp on a node: where it is looked for, and what is said when it is not there or does not run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.lab.conftest import MakeLab
from tests.lab.lab import Lab, NodeSpec
from tests.lab.operator import Operator, operator_of, remains


@pytest.fixture(scope="module")
def lab(make_lab: MakeLab) -> Lab:
    return make_lab(
        [
            NodeSpec("head", models=True),
            NodeSpec("usual", bin_dir="/opt/llama.cpp/build/bin"),
            NodeSpec("odd", bin_dir="/opt/somewhere/else"),
            NodeSpec("bare", build=None),
        ]
    )


@pytest.fixture
def operator(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    before = remains(lab)
    yield operator_of(lab, tmp_path_factory.mktemp("operator"))
    assert remains(lab) == before


def with_worker(operator: Operator, name: str, **settings: object) -> Operator:
    worker = {"name": name, "role": "worker", **settings}
    return operator.with_inventory({**operator.inventory, "nodes": [worker, *operator.inventory["nodes"]]})


def found(operator: Operator) -> dict[str, Any]:
    """What `check` says of the worker."""
    node = operator.run("check", "--json").document["nodes"][0]
    assert isinstance(node, dict)
    return node


def problem_of(operator: Operator) -> str:
    """The one problem of the worker; `up` refuses with it and starts nothing."""
    refused = operator.run("up", "--allow-skew")
    assert refused.exit_code == 6
    problems = found(operator)["problems"]
    assert len(problems) >= 1
    assert problems[0]["message"] in refused.stderr
    return f"{problems[0]['code']}: {problems[0]['message']}"


def test_it_is_found_in_a_usual_place_that_is_not_on_the_path(lab: Lab, operator: Operator) -> None:
    assert lab.ssh("usual", "command -v ggml-rpc-server", check=False).returncode != 0
    assert found(with_worker(operator, "usual"))["programs"] == {
        "llama_server": "/opt/llama.cpp/build/bin/llama-server",
        "rpc_server": "/opt/llama.cpp/build/bin/ggml-rpc-server",
    }


def test_it_is_found_on_the_path_of_a_shell_without_terminal(lab: Lab, operator: Operator) -> None:
    lab.ssh("odd", "mkdir -p /usr/local/bin; ln -s /opt/somewhere/else/ggml-rpc-server /usr/local/bin/")
    try:
        assert found(with_worker(operator, "odd"))["programs"]["rpc_server"] == "/usr/local/bin/ggml-rpc-server"
    finally:
        lab.ssh("odd", "rm /usr/local/bin/ggml-rpc-server")


def test_it_is_found_where_the_inventory_says(operator: Operator) -> None:
    told = with_worker(operator, "odd", llama={"bin_dir": "/opt/somewhere/else"})
    assert found(told)["programs"]["rpc_server"] == "/opt/somewhere/else/ggml-rpc-server"
    told.succeed("check")


def test_where_it_was_looked_for_is_told(lab: Lab, operator: Operator) -> None:
    path = lab.ssh("bare", "echo $PATH").stdout.strip()
    said = problem_of(with_worker(operator, "bare"))
    assert said.startswith("program-missing: ")
    assert "PATH" in said
    assert path in said


def test_a_wrong_directory_in_the_inventory_is_named(operator: Operator) -> None:
    said = problem_of(with_worker(operator, "odd", llama={"bin_dir": "/opt/llama.cpp"}))
    assert said.startswith("program-missing: ")
    assert "/opt/llama.cpp" in said


def test_a_program_that_may_not_be_run_is_not_taken(lab: Lab, operator: Operator) -> None:
    lab.ssh("bare", "mkdir -p ~/llama.cpp/bin; touch ~/llama.cpp/bin/ggml-rpc-server")
    assert problem_of(with_worker(operator, "bare")).startswith("program-missing: ")
    lab.ssh("bare", "rm -r ~/llama.cpp")


def test_a_worker_that_lacks_its_libraries_is_told_apart(lab: Lab, operator: Operator) -> None:
    lab.ssh("odd", "mkdir ~/bin; cp /opt/somewhere/else/ggml-rpc-server /opt/somewhere/else/llama-server ~/bin")
    said = problem_of(with_worker(operator, "odd"))
    assert said.startswith("library-missing: ")
    assert "libggml" in said
    lab.ssh("odd", "rm -r ~/bin")


def test_a_node_that_can_not_write_its_state_says_so(lab: Lab, operator: Operator) -> None:
    lab.ssh("usual", "mkdir -p ~/.local && rm -rf ~/.local/state && : >~/.local/state")
    failed = with_worker(operator, "usual").run("up")
    lab.ssh("usual", "rm ~/.local/state")
    assert failed.exit_code == 6
    assert "usual: the worker could not be started" in failed.stderr
    assert ".local/state" in failed.stderr
