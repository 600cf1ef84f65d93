"""Files that can't be read, and the next step each time."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from clusterctl.config.loading import load_inventory, load_recipe, parse_inventory, parse_recipe
from clusterctl.errors import ConfigError, UsageError

NOBODY = 65534
INVENTORY = b"version: 1\ncluster: c\nnodes: [{name: h, role: head}]\n"


def refusal(path: Path) -> UsageError:
    with pytest.raises(UsageError) as caught:
        load_inventory(path, {})
    assert not isinstance(caught.value, ConfigError)
    assert caught.value.exit_code == 2
    return caught.value


def test_a_missing_file_tells_how_to_make_one(tmp_path: Path) -> None:
    error = refusal(tmp_path / "none.yaml")
    assert str(error) == f"{tmp_path}/none.yaml: no such file"
    assert "clusterctl init" in (error.hint or "")
    with pytest.raises(UsageError) as caught:
        load_recipe(tmp_path / "none.yaml", {})
    assert "a recipe needs four keys" in (caught.value.hint or "")


@pytest.mark.parametrize("text", ["", "- a\n- b\n", "nodes: [", "just words"])
def test_what_is_no_map_tells_what_a_file_must_hold(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_inventory(text, "i.yaml", {})
    assert "`version`, `cluster` and `nodes`" in (caught.value.hint or "")
    assert "clusterctl init" in (caught.value.hint or "")
    with pytest.raises(ConfigError) as caught:
        parse_recipe(text, "r.yaml", {})
    assert "a recipe needs four keys" in (caught.value.hint or "")


def test_files_that_were_swapped_are_recognised() -> None:
    recipe = "version: 1\nname: r\nmodel: {path: /m.gguf}\ncontext: 512\n"
    with pytest.raises(ConfigError) as caught:
        parse_inventory(recipe, "r.yaml", {})
    assert caught.value.hint == "this looks like a recipe, which -r names; -i names the inventory"
    with pytest.raises(ConfigError) as caught:
        parse_recipe(INVENTORY.decode(), "i.yaml", {})
    assert caught.value.hint == "this looks like an inventory, which -i names; -r names the recipe"
    with pytest.raises(ConfigError) as caught:
        parse_recipe("version: 1\nmodel: {}\nnodes: []\n", "r.yaml", {})
    assert "clusterctl schema recipe" in (caught.value.hint or "")


def test_a_directory_is_told_apart(tmp_path: Path) -> None:
    assert str(refusal(tmp_path)).endswith("a directory, not a file")


@contextmanager
def as_nobody() -> Iterator[None]:
    """As somebody who may not read everything, which root may."""
    own = os.geteuid()
    if own == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(own)


def test_a_file_of_somebody_else_is_told_apart(tmp_path: Path) -> None:
    file = tmp_path / "i.yaml"
    file.touch(mode=0)
    with as_nobody():
        error = refusal(file)
    assert str(error).endswith("not readable by this user")


@pytest.mark.parametrize("content", [b"\xff\xfea\x00", b"name: \xe4", b"\x80"])
def test_other_encodings_are_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "i.yaml"
    file.write_bytes(content)
    assert str(refusal(file)).endswith("not UTF-8 text")


def test_a_huge_file_is_refused_after_its_first_mebibyte() -> None:
    assert str(refusal(Path("/dev/zero"))) == "/dev/zero: larger than 1 MiB, so hardly the right file"


@pytest.mark.parametrize("name", ["a\0b", "x" * 5000])
def test_a_name_no_file_can_have_is_refused(name: str) -> None:
    assert name[:1] in str(refusal(Path(name)))


def test_what_the_terminal_would_obey_in_a_file_name_is_shown_as_an_escape() -> None:
    assert str(refusal(Path("\x1b[31m.yaml"))) == "\\x1b[31m.yaml: no such file"


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    file = tmp_path / "i.yaml"
    file.write_bytes(b"\xef\xbb\xbf" + INVENTORY)
    assert load_inventory(file, {}).cluster == "c"


def test_faults_name_the_file_as_it_was_given_and_where_to_read_on(tmp_path: Path) -> None:
    file = tmp_path / "i.yaml"
    file.write_bytes(INVENTORY.replace(b"cluster: c", b"cluster: C"))
    with pytest.raises(ConfigError) as caught:
        load_inventory(file, {})
    assert str(caught.value).startswith(f"{file}:2:10: cluster: must be")
    assert caught.value.hint == "`clusterctl schema inventory` describes every key"


def test_the_package_itself_costs_no_heavy_import() -> None:
    program = "import sys, clusterctl.config; sys.exit(bool({'pydantic', 'yaml'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
