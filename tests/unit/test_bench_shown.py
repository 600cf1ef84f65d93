"""The answers of `bench` and `connect` as text, Markdown and picture: harmless, and right at any width."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given

from clusterctl.measurements import FIGURES, Spread
from clusterctl.reports import Access, ConnectReport
from clusterctl.ui.bench import bench_view, show_bench
from clusterctl.ui.bench_markdown import bench_markdown
from clusterctl.ui.bench_plot import draw_bench
from clusterctl.ui.bench_rows import figure_text, number_text, spread_text
from clusterctl.ui.connect import show_connect
from clusterctl.ui.screen import Screen
from tests.unit.bench_samples import bench_report
from tests.unit.ui_rendering import HOSTILE, MARKUP, WIDTHS, on_pipe, rendered, rendering, unseen, widest, words


@rendering
@given(text=HOSTILE)
def test_hostile_text_neither_acts_nor_crashes(text: str) -> None:
    shown = on_pipe(lambda: show_bench(Screen(), bench_report(text)))
    assert not unseen(shown.stdout)
    assert not unseen(bench_markdown(bench_report(text)))
    connected = ConnectReport("http://127.0.0.1:8080", text, text, wants_key=True)
    assert not unseen(on_pipe(lambda: show_connect(Screen(), connected)).stdout)


def test_markup_is_shown_as_it_is_and_escaped_in_markdown() -> None:
    assert words(MARKUP) in words(on_pipe(lambda: show_bench(Screen(), bench_report(MARKUP)), width=200).stdout)
    markdown = bench_markdown(bench_report("[a](http://evil) <img src=x> | `b` @ops :boom:"))
    assert r"\[a\](http\://evil) \<img src=x\> \| \`b\` \@ops \:boom:" in markdown


@pytest.mark.parametrize("width", WIDTHS)
def test_no_line_is_wider_than_the_screen(width: int) -> None:
    assert widest(rendered(bench_view(bench_report()), width)) <= width


def test_the_report_shows_figures_warnings_and_what_is_missing() -> None:
    shown = words(rendered(bench_view(bench_report()), 120))
    assert "cluster, 4 clients" in shown
    assert "12.5 12.2-12.8" in shown
    assert (
        "cluster, 1 client: the head itself says prefill 12.5 tok/s, decode 12.5 tok/s, which is 0.0% from ours"
        in shown
    )
    assert "not measured: alone, 8 slots: no room x" in shown
    assert "0.50x worse" in shown
    assert "layers: strix1/ROCm0 16, rtx/CUDA0 15" in shown


def test_every_row_of_a_markdown_table_has_as_many_cells() -> None:
    for table in re.findall(r"(?:^\|.*\n)+", bench_markdown(bench_report("a|b")), re.MULTILINE):
        rows = table.splitlines()
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) == 1
        assert set(rows[1]) == set("|- ")


@pytest.mark.parametrize(
    ("number", "text"),
    [(0.01234, "0.0123"), (0.2, "0.200"), (9.6, "9.60"), (96.24, "96.2"), (962.4, "962"), (12345.6, "12346")],
)
def test_numbers_have_three_digits_that_count(number: float, text: str) -> None:
    assert number_text(number) == text


def test_a_single_value_has_no_range_and_an_unknown_one_is_a_dash() -> None:
    assert spread_text(Spread(96.2, 95.8, 97.0, 5)) == "96.2 (95.8-97.0)"
    assert spread_text(Spread(96.2, 96.2, 96.2, 1)) == "96.2"
    assert spread_text(None) == "-"


def test_figures_have_their_unit_and_unknown_ones_their_name() -> None:
    assert figure_text("decode_tok_s") == "decode tok/s"
    assert figure_text("draft_acceptance") == "accepted drafts"
    assert figure_text("watts") == "watts"
    assert all(figure.unit in figure_text(name) for name, figure in FIGURES.items())


def test_a_picture_is_drawn_whatever_a_node_says(tmp_path: Path) -> None:
    svg, png = tmp_path / "bench.svg", tmp_path / "bench.png"
    report = bench_report("$x_ \\frac{ <b> \u202e &")
    draw_bench(report, svg)
    draw_bench(report, png)
    assert ElementTree.fromstring(svg.read_text()).tag.endswith("svg")
    assert png.read_bytes().startswith(b"\x89PNG")


def test_connect_tells_the_address_and_how_to_ask() -> None:
    access = Access(key_variable="LLAMA_API_KEY")
    report = ConnectReport("http://127.0.0.1:8080", "rtx", "10.0.0.1:8080", wants_key=True, access=access)
    shown = on_pipe(lambda: show_connect(Screen(), report)).stdout
    assert "http://127.0.0.1:8080 leads to 10.0.0.1:8080 of rtx" in shown
    assert "curl http://127.0.0.1:8080/v1/chat/completions" in shown
    assert "Authorization: Bearer $API_KEY" in shown
    assert "API_KEY is in LLAMA_API_KEY, in the inventory's env of rtx" in shown
