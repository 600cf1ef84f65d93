"""Log lines on screen: the node in front, in its own colour, and nothing that a node writes is obeyed."""

from __future__ import annotations

from hypothesis import given

from clusterctl.ui.logs import LogPrinter, show_cause
from clusterctl.ui.screen import Color, Screen
from tests.unit.ui_rendering import HOSTILE, MARKUP, on_pipe, rendering, unseen

NODES = ["head", "strix1", "strix2"]


def printed(*lines: tuple[str, str], color: Color = Color.NEVER) -> str:
    def print_all() -> None:
        printer = LogPrinter(Screen(color), NODES)
        for node, text in lines:
            printer(node, text)

    return on_pipe(print_all).stdout


def test_lines_stand_behind_their_node() -> None:
    shown = printed(("head", "loading"), ("strix1", "a very long line " * 20))
    assert shown.splitlines() == ["head   │ loading", "strix1 │ " + ("a very long line " * 20).strip()]


def test_every_node_has_a_colour_of_its_own_and_the_text_has_none() -> None:
    shown = printed(*((node, "text") for node in NODES), color=Color.ALWAYS)
    colors = [line.partition("m")[0] for line in shown.splitlines()]
    assert len(set(colors)) == len(NODES)
    assert all(line.endswith("text\x1b[0m") and "\x1b[39m" in line for line in shown.splitlines())


def test_markup_in_a_log_is_shown_as_it_is() -> None:
    assert MARKUP in printed(("head", MARKUP))


@rendering
@given(text=HOSTILE)
def test_hostile_lines_neither_act_nor_pass_for_another_node(text: str) -> None:
    shown = printed((text, text), ("head", text))
    assert not unseen(shown)
    assert len(shown.splitlines()) == 2


@rendering
@given(text=HOSTILE)
def test_a_hostile_cause_stays_on_its_lines(text: str) -> None:
    shown = on_pipe(lambda: show_cause(Screen(), text, text, text, text or "x"))
    assert shown.stdout == ""
    assert not unseen(shown.stderr)
    assert [line[:4] for line in shown.stderr.splitlines()] == ["like", "  | ", "hint"]
