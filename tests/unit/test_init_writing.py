"""The text of a written inventory says exactly what its draft says, whatever the words are."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from clusterctl.config.loading import parse_inventory
from clusterctl.config.schema import inventory_schema
from clusterctl.config.writing import InventoryDraft, NodeDraft, inventory_text, write_inventory
from clusterctl.errors import UsageError
from clusterctl.model import Role

one_line = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=40)
paths = one_line.map(lambda text: f"/{text}") | st.sampled_from(
    ["~/llama.cpp/build/bin", "/a b/bin", "/it's/${HOME}/bin", "/opt/#1: x", "/opt/$${A}", "/null", "/bin "]
)
users = one_line.filter(lambda text: not text.startswith("-")) | st.sampled_from(
    ["null", "~", "123", "yes", "${A}"]
)
hosts = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9.-]{0,20}", fullmatch=True) | st.just("fe80::1")
SCHEMA = Draft202012Validator(inventory_schema())
comments = st.lists(st.text(max_size=200), max_size=3).map(tuple)


@st.composite
def drafts(draw: st.DrawFn) -> InventoryDraft:
    names = draw(
        st.lists(st.from_regex(r"[a-z0-9][a-z0-9-]{0,20}", fullmatch=True), min_size=2, max_size=4, unique=True)
    )
    hosts_of = draw(st.lists(hosts, min_size=len(names), max_size=len(names), unique_by=str.lower))
    nodes = [
        NodeDraft(
            name=name,
            role=Role.WORKER if at else Role.HEAD,
            host=host if at > 1 else draw(st.sampled_from([None, host])) if at else host,
            user=draw(st.none() | users),
            port=draw(st.none() | st.integers(1, 65535)),
            backend=draw(st.sampled_from([None, "cuda", "cpu"])),
            serve_only=not at and draw(st.booleans()),
            bin_dir=draw(st.none() | paths),
            rpc_address=f"10.0.0.{at}" if at and draw(st.booleans()) else None,
            comments=draw(comments),
        )
        for at, (name, host) in enumerate(zip(names, hosts_of, strict=True))
    ]
    return InventoryDraft(
        "homelab", tuple(nodes), "10.0.0.0/24", draw(comments), draw(st.none() | st.just("b11434"))
    )


@given(drafts())
def test_what_is_read_is_what_was_drafted(draft: InventoryDraft) -> None:
    text = inventory_text(draft)
    inventory = parse_inventory(text, "written.yaml", {})
    assert (inventory.cluster, str(inventory.network)) == (draft.cluster, draft.network)
    for node, wanted in zip(inventory.nodes, draft.nodes, strict=True):
        assert (node.name, node.role, node.backend) == (wanted.name, wanted.role, wanted.backend)
        assert (node.connection, node.host) == (("ssh", wanted.host) if wanted.host else ("local", wanted.name))
        assert (node.ssh.user, node.ssh.port) == (wanted.user, wanted.port)
        assert (node.serve_only, node.llama.build) == (wanted.serve_only, None)
        assert (node.llama.bin_dir, node.rpc.address) == (wanted.bin_dir, wanted.rpc_address)
    assert not list(SCHEMA.iter_errors(yaml.safe_load(text)))


def test_what_all_nodes_have_in_common_stands_in_the_defaults_with_a_pin_to_uncomment() -> None:
    nodes = (
        NodeDraft("rtx", Role.HEAD, "rtx.lan", bin_dir="~/llama.cpp/build/bin"),
        NodeDraft("strix", Role.WORKER, "strix.lan", bin_dir="~/llama.cpp/build/bin"),
    )
    text = inventory_text(InventoryDraft("homelab", nodes, "10.0.0.0/24", pin="b11434"))
    assert text.count("bin_dir") == 1
    pinned = text.replace("# build:", "build:")
    assert {node.llama.build for node in parse_inventory(pinned, "pinned.yaml", {}).nodes} == {"b11434"}


def test_long_comments_are_wrapped_at_words() -> None:
    draft = InventoryDraft("c", (NodeDraft("h", Role.HEAD, "h", comments=("word " * 60, "x" * 300)),))
    lines = inventory_text(draft).splitlines()
    assert sum("word" in line for line in lines) > 1
    assert all(len(line) <= 110 or "xxx" in line for line in lines)


def test_a_file_is_replaced_only_on_request(tmp_path: Path) -> None:
    file = tmp_path / "homelab.yaml"
    write_inventory(file, "one\n", replace=False)
    with pytest.raises(UsageError, match="exists") as refusal:
        write_inventory(file, "two\n", replace=False)
    assert "--force" in str(refusal.value.hint)
    assert file.read_text() == "one\n"
    write_inventory(file, "two\n", replace=True)
    assert file.read_text() == "two\n"


def test_a_file_that_can_not_be_written_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can't be written"):
        write_inventory(tmp_path / "missing" / "x.yaml", "", replace=False)
