"""The answer of `bench`: what was measured on what, beside the head's own timings and beside other runs."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from clusterctl.measurements import BenchReport, Comparison, Spread
from clusterctl.ui.bench_rows import (
    CHANGE_HEADINGS,
    change_row,
    comparison_title,
    head_lines,
    load_headings,
    load_rows,
    number_text,
    range_text,
    report_lines,
)
from clusterctl.ui.console import data_console
from clusterctl.ui.screen import Screen
from clusterctl.ui.tables import Column, Grid, indented, outside

VERDICT_STYLES = {"better": "green", "worse": "red"}


def show_bench(screen: Screen, report: BenchReport) -> None:
    """Print the report to stdout."""
    data_console(screen).print(bench_view(report))


def bench_view(report: BenchReport) -> Group:
    """Return the report as text."""
    return Group(
        *(Text.assemble((name, "bold"), ": ", outside(value)) for name, value in report_lines(report)),
        Text(),
        Grid(
            tuple(map(Column, load_headings(report.runs))),
            tuple((outside(what, "bold"), *map(_cell, figures)) for what, figures in load_rows(report.runs)),
        ),
        Text("medians, and below them the lowest and the highest", "dim"),
        Text(),
        *_remarks(report),
        *(line for comparison in report.comparisons for line in _comparison(comparison)),
        outside(f"kept in {report.kept_in}"),
    )


def _cell(spread: Spread | None) -> Text:
    if spread is None:
        return Text("-")
    return Text.assemble(number_text(spread.median), "\n", (range_text(spread), "dim"))


def _remarks(report: BenchReport) -> Iterator[RenderableType]:
    for run in report.runs:
        yield from map(outside, head_lines(run))
    for skipped in report.skipped:
        yield Text.assemble(("not measured", "yellow"), ": ", outside(f"{skipped.arm}: {skipped.reason}"))
    for run in report.runs:
        for warning in run.warnings:
            yield Text.assemble(("warning", "yellow"), ": ", outside(f"{run.arm}: {warning}"))
    yield Text()


def _comparison(comparison: Comparison) -> Iterator[RenderableType]:
    yield outside(comparison_title(comparison), "bold")
    if comparison.changes:
        rows = tuple(
            (*map(outside, cells), outside(verdict, VERDICT_STYLES.get(verdict, "")))
            for *cells, verdict in map(change_row, comparison.changes)
        )
        yield indented(Grid(tuple(map(Column, CHANGE_HEADINGS)), rows))
    for difference in comparison.differences:
        yield indented(Text.assemble(("note", "yellow"), ": ", outside(difference)))
    yield Text()
