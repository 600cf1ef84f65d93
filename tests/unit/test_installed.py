"""The one step that gives a node the build it should have: a command where it works, never a build unknown."""

from __future__ import annotations

import re

import pytest

from clusterctl.cluster.installed import ROOT, aligning_step
from clusterctl.config.inventory import Inventory
from clusterctl.install.order import RELEASES, Source, make_order
from clusterctl.model import Build
from tests.unit.cluster_samples import NODES, inventory

HEAD = Build(10092, "3ce7da2")


def nodes(settings: str) -> Inventory:
    """An inventory in which w1 has these settings."""
    return inventory(
        NODES.replace("{name: w1, role: worker}", f"{{name: w1, role: worker, host: w1.lan, {settings}}}")
    )


def step(head: Build | None, settings: str = "rpc: {}", node: str = "w1") -> str:
    known = nodes(settings)
    return aligning_step(known, known.node(node), head)


@pytest.mark.parametrize(
    ("head", "settings", "command"),
    [
        (HEAD, "rpc: {}", "install --build b10092"),
        # init pins the commit: the head that has it tells its tag, by which releases are found
        (HEAD, "llama: {build: 3ce7da2}", "install --build b10092"),
        (HEAD, "llama: {build: b10434}", "install --build b10434"),
        (HEAD, "llama: {build: 10434}", "install --build b10434"),
        (None, "llama: {build: b10434}", "install --build b10434"),
        (HEAD, "llama: {build: 7e4c0a9}", "install --build 7e4c0a9 --from source FILE"),
        (Build(None, "3ce7da2"), "rpc: {}", "install --build 3ce7da2 --from source FILE"),
        (HEAD, f"llama: {{bin_dir: {ROOT}/current}}", "install --build b10092"),
    ],
)
def test_the_command_names_what_is_pinned_else_what_the_head_has(
    head: Build | None, settings: str, command: str
) -> None:
    assert f"`clusterctl {command}`" in step(head, settings)
    _, _, build, *source = command.split()
    if not source:
        assert make_order(nodes(settings), build, Source.RELEASE, (), (), RELEASES).name == build


def test_a_build_that_is_not_known_is_not_named() -> None:
    said = step(None)
    assert said == "put llama.cpp of a build that tells its version on w1.lan"
    assert not re.search(r"b[0-9]", said)


def test_where_install_would_refuse_it_is_not_advised() -> None:
    settings = "llama: {bin_dir: /opt/here}"
    assert step(HEAD, settings) == "put llama.cpp b10092 (3ce7da2) into /opt/here on w1.lan"
    assert step(HEAD, settings, node="w2") == "put llama.cpp b10092 (3ce7da2) on w2"
