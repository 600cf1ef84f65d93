"""Outside text, quantities and command lines as they reach the screen."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from clusterctl.ui.console import PIPE_WIDTH, pipe_width
from clusterctl.ui.safe import one_line, printable
from clusterctl.ui.shell import command_text, quote
from clusterctl.ui.tables import Column, Grid, outside
from clusterctl.ui.units import count, duration, part_of, size
from tests.unit.ui_rendering import HOSTILE, MARKUP, rendered, rendering, unseen, widest

ARGUMENT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


@given(HOSTILE)
def test_nothing_unseen_is_printable(text: str) -> None:
    assert not unseen(printable(text))
    assert printable(printable(text)) == printable(text)


@given(HOSTILE)
def test_one_line_is_one_line(text: str) -> None:
    assert "\n" not in one_line(text)
    assert not unseen(one_line(text))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 表 C:\\x", "plain é 表 C:\\x"),
        ("two\nlines", "two\nlines"),
        ("a\tb", "a b"),
        ("\x1b[31m", "\\x1b[31m"),
        ("\x9b", "\\x9b"),
        ("a\u202eb", "a\\u202eb"),
        ("\u2066\u200b\ufeff", "\\u2066\\u200b\\ufeff"),
        ("\U000e0041", "\\U000e0041"),
        ("\ud800", "\\ud800"),
    ],
)
def test_what_acts_or_hides_is_shown_as_an_escape(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_markup_from_outside_is_shown_and_not_obeyed() -> None:
    assert rendered(outside(MARKUP), 80).strip() == MARKUP


@pytest.mark.parametrize(
    ("mib", "shown"),
    [
        (0, "0 MiB"),
        (1.5, "1.5 MiB"),
        (512.4, "512 MiB"),
        (1023.9, "1.0 GiB"),
        (24576, "24.0 GiB"),
        (1024 * 1023.99, "1.00 TiB"),
        (1.5 * 1024 * 1024, "1.50 TiB"),
        (-2048, "-2.0 GiB"),
    ],
)
def test_a_size_has_the_unit_that_keeps_it_short(mib: float, shown: str) -> None:
    assert size(mib) == shown


def test_a_part_repeats_its_unit_only_where_it_differs() -> None:
    assert part_of(24105, 24576) == "23.5/24.0 GiB"
    assert part_of(512, 24576) == "512 MiB / 24.0 GiB"


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.44, "0.4 s"), (42.4, "42 s"), (59.7, "1 min 0 s"), (190, "3 min 10 s"), (7500, "2 h 5 min")],
)
def test_a_duration_is_told_in_two_units_at_most(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


def test_a_count_agrees_with_its_noun() -> None:
    assert [count(number, "node") for number in (0, 1, 2)] == ["0 nodes", "1 node", "2 nodes"]


@rendering
@given(st.lists(ARGUMENT, max_size=5), ARGUMENT, st.sampled_from([10, 60, 10_000]))
def test_a_pasted_command_is_exactly_the_planned_one(arguments: list[str], value: str, width: int) -> None:
    script = 'printf "%s\\0" "$PLANNED" "$@"'
    text = command_text(("sh", "-c", script, "-sh", *arguments), {"PLANNED": value}, width)
    done = subprocess.run(["bash", "-c", text], capture_output=True, check=True)
    assert done.stdout == "".join(f"{word}\0" for word in (value, *arguments)).encode()
    assert not unseen(text)


def test_a_long_command_has_one_option_with_its_values_per_line() -> None:
    text = command_text(("/bin/my server", "-ngl", "-1", "--rpc", "a,b", "-c"), {"A": "1 2"}, 20)
    assert text == "A='1 2' '/bin/my server' \\\n  -ngl -1 \\\n  --rpc a,b \\\n  -c"


def test_a_short_command_stays_on_one_line() -> None:
    assert command_text(("server", "-c", "2"), {}, 80) == "server -c 2"


def test_a_word_that_can_be_shown_gets_posix_quotes() -> None:
    assert quote("it's é") == "'it'\"'\"'s é'"


def test_columns_give_way_without_breaking_words_and_numbers() -> None:
    grid = Grid((Column("name"), Column("size", is_number=True)), ((Text("a quick brown fox"), Text("24.0 GiB")),))
    assert [line.split() for line in rendered(grid, 18).splitlines()] == [
        ["name", "size"],
        ["a", "quick", "24.0", "GiB"],
        ["brown"],
        ["fox"],
    ]


def test_a_whole_cell_is_broken_only_after_the_others() -> None:
    grid = Grid(
        (Column("name"), Column("memory", is_whole=True)), ((Text("one two three"), Text("CUDA0 24.0 GiB")),)
    )
    assert "CUDA0 24.0 GiB" in rendered(grid, 21)
    assert "CUDA0 24.0 GiB" not in rendered(grid, 20)


def test_a_row_becomes_a_block_where_its_words_do_not_fit() -> None:
    grid = Grid((Column("node"), Column("address")), ((Text("strix1"), Text("10.10.0.21:50052")),))
    assert rendered(grid, 24).startswith("node")
    assert rendered(grid, 23).splitlines()[0].strip() == "strix1"


@rendering
@given(st.lists(st.tuples(HOSTILE, HOSTILE), max_size=3), st.integers(30, 130))
def test_no_grid_is_wider_than_the_screen(rows: list[tuple[str, str]], width: int) -> None:
    cells = tuple((outside(left), outside(right)) for left, right in rows)
    assert widest(rendered(Grid((Column("left"), Column("right")), cells), width)) <= width


@pytest.mark.parametrize(
    ("columns", "width"), [("60", 60), *((unusable, PIPE_WIDTH) for unusable in ("", "0", "wide", "²"))]
)
def test_a_pipe_is_as_wide_as_columns_says_or_wide_enough(columns: str, width: int) -> None:
    assert pipe_width({"COLUMNS": columns}) == width
    assert pipe_width({}) == PIPE_WIDTH
