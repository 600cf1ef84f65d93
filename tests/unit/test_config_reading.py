"""YAML text to a document: positions, duplicates, aliases, and texts that are no YAML at all."""

from __future__ import annotations

import pytest

from clusterctl.config.document import plain
from clusterctl.config.reading import MAX_DEPTH, MAX_VALUES, read_document
from clusterctl.errors import ConfigError


def read(text: str, **environment: str) -> object:
    document = read_document(text, "f.yaml", environment)
    if document.faults:
        raise ConfigError(document.faults)
    return plain(document.root)


def faults(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        read(text)
    return [str(fault) for fault in caught.value.faults]


@pytest.mark.parametrize(
    "written", ["123", "11.0", "0x1F", "010", "on", "yes", "2024-01-31", "1_000", ".inf", "12:30"]
)
def test_a_scalar_keeps_the_text_that_was_written(written: str) -> None:
    assert read(f"key: {written}") == {"key": written}


@pytest.mark.parametrize("written", ["", "~", "null", "# nothing"])
def test_a_key_without_a_value_is_known_to_be_empty(written: str) -> None:
    assert read(f"key: {written}\nother: 1") == {"key": None, "other": "1"}


def test_quoted_text_is_never_null() -> None:
    assert read("{a: '', b: '~', c: \"null\"}") == {"a": "", "b": "~", "c": "null"}


@pytest.mark.parametrize("value", ["a: b", "[1, 2]", "x\n- y", "'\"", "~", "", "&a *b", "# no", "${OTHER}", "\t"])
def test_a_filled_value_never_becomes_structure(value: str) -> None:
    text = "plain: ${V}\nsingle: '${V}'\ndouble: \"${V}\"\nlist: ['${V}']\n"
    assert read(text, V=value) == {"plain": value, "single": value, "double": value, "list": [value]}


@pytest.mark.parametrize("text", ["a: {b: ${V}}", "a: [${V}]", "a: {b: x${V:-1}}"])
def test_a_bare_variable_inside_brackets_is_told_to_take_quotes(text: str) -> None:
    assert faults(text)[0].endswith("inside `{ }` and `[ ]`, a variable must stand in quotes: '${VAR}'")


def test_every_value_and_key_knows_its_place() -> None:
    document = read_document("a: 1\nb:\n  - x\n  - c: {d: 2}\n", "f.yaml", {})
    found = document.find(("b", 1, "c", "d"))
    assert (found.value.mark.line, found.value.mark.column) == (4, 12)
    assert found.key_mark is not None
    assert (found.key_mark.line, found.key_mark.column) == (4, 9)


def test_duplicate_keys_are_refused_at_any_depth_and_all_at_once() -> None:
    assert faults("a: 1\nb: {c: 1, c: 2}\na: 3\n") == [
        "f.yaml:2:11: b: duplicate key `c`; the first is on line 2",
        "f.yaml:3:1: duplicate key `a`; the first is on line 1",
    ]


def test_unset_variables_are_told_with_their_key_all_at_once() -> None:
    assert faults("a: ${A}\nb: [x, '${B}']\n") == [
        "f.yaml:1:4: a: the environment variable `A` is not set; set it, or write ${A:-default}",
        "f.yaml:2:8: b[1]: the environment variable `B` is not set; set it, or write ${B:-default}",
    ]


def test_anchors_aliases_and_merge_keys_work() -> None:
    text = "base: &b {x: 1, y: 2}\nmore: &m {y: 3, z: 4}\nuse: {<<: [*b, *m], x: 9}\nagain: *b\n"
    assert read(text) == {
        "base": {"x": "1", "y": "2"},
        "more": {"y": "3", "z": "4"},
        "use": {"x": "9", "y": "2", "z": "4"},
        "again": {"x": "1", "y": "2"},
    }


def test_a_merge_key_wants_maps() -> None:
    assert faults("a: {<<: [x]}") == ["f.yaml:1:9: a.<<: must be a map or a list of maps"]


def test_a_bomb_of_aliases_is_refused_before_it_grows() -> None:
    levels = ["l0: &l0 [x, x, x, x, x, x, x, x, x]"]
    levels += [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 12)]
    assert f"more than {MAX_VALUES} values, counting what aliases repeat" in faults("\n".join(levels))[0]


@pytest.mark.parametrize("text", ["a: &a [*a]", "a: &a {b: *a}", "a: &a {<<: *a}"])
def test_an_alias_inside_what_it_stands_for_is_refused(text: str) -> None:
    assert "an alias stands for something that contains it" in faults(text)[0]


@pytest.mark.parametrize("opening", ["[", "{a: ", "? ", "- "])
def test_bottomless_nesting_is_refused_quickly(opening: str) -> None:
    assert f"nested deeper than {MAX_DEPTH} levels" in faults("a:\n  " + opening * 100_000)[0]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "f.yaml:1:1: the file is empty"),
        ("# only a comment\n", "f.yaml:1:1: the file is empty"),
        ("just text", "f.yaml:1:1: the file must be a map of `key: value` lines"),
        ("- a\n- b", "f.yaml:1:1: the file must be a map of `key: value` lines"),
        ("a:\n\tb: 1", "f.yaml:2:1: a tab can't indent YAML; use spaces"),
        ("a: b: c", "f.yaml:1:5: `:` is not expected here; check the indentation, or quote the text"),
        ("a: 1\nb\nc: 2", "f.yaml:3:1: expected `key: value`"),
        (
            "a:\n  b: 1\n c: 2",
            "f.yaml:3:2: this does not fit what stands above; check the indentation and open brackets",
        ),
        ("a: 'x", "f.yaml:1:6: a quote is opened and never closed"),
        ("a: [1, 2", "f.yaml:1:9: a `,` or the closing bracket is missing before this"),
        ("a: *b", "f.yaml:1:4: this alias has no anchor above it"),
        ("a: 1\n---\nb: 2", "f.yaml:2:1: only one YAML document per file; remove the `---`"),
        ("a: 1\nb: \x07", "f.yaml:2:4: the character U+0007 is not allowed in YAML"),
        ('a: "\\UFFFFFFFF"', "f.yaml:1:7: not valid YAML: a number or an escape is out of range"),
        ('a: "x\\0"', "f.yaml:1:4: a: must not contain a NUL character"),
        ('a: "\\ud800"', "f.yaml:1:4: a: must be valid Unicode"),
        (
            "a: !!python/name:os.system x",
            "f.yaml:1:4: a: tags such as `tag:yaml.org,2002:python/name:os.system`",
        ),
        ("? [a]\n: 1", "f.yaml:1:3: a key must be plain text"),
    ],
)
def test_what_is_not_one_map_in_yaml_is_told_with_its_place(text: str, fault: str) -> None:
    assert faults(text)[0].startswith(fault)


def test_what_a_terminal_would_obey_is_shown_as_an_escape() -> None:
    assert faults('"a\\e[2J\\u202E": !x "\\e]0;title\\a"') == [
        r"f.yaml:1:17: a\x1b[2J\u202e: tags such as `!x` have no meaning here; remove it"
    ]


def test_a_byte_order_mark_and_windows_line_ends_are_fine() -> None:
    assert read("\ufeffa: 1\r\nb: 2\r\n") == {"a": "1", "b": "2"}
