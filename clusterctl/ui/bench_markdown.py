"""The answer of `bench` as a Markdown file, to paste into an issue or a README."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from clusterctl.measurements import BenchReport
from clusterctl.ui.bench_rows import (
    CHANGE_HEADINGS,
    change_row,
    comparison_title,
    head_lines,
    load_headings,
    load_rows,
    report_lines,
    spread_text,
)
from clusterctl.ui.safe import one_line

# What Markdown, or the HTML in it, could obey; a backslash before it makes it plain text (CommonMark 2.4). A
# colon means something only in an address and in the name of an emoji.
_MEANINGFUL = re.compile(r"([\\`*_\[\]<>#!|~&@$]|:(?=//|[\w+-]+:))")


def bench_markdown(report: BenchReport) -> str:
    """Return the report as GitHub-flavoured Markdown."""
    return "\n".join(_lines(report))


def _lines(report: BenchReport) -> Iterator[str]:
    run = report.cluster_run
    yield f"## {_plain(run.recipe)} on {_plain(run.cluster)}, {_plain(run.at)}"
    yield ""
    yield from _bullets(f"{name}: {value}" for name, value in report_lines(report))
    yield from _bullets(
        f"{node.node}: {node.os} {node.arch}, {', '.join(node.devices) or 'no devices'}"
        for node in run.hardware.nodes
    )
    yield ""
    rows = ((what, *map(spread_text, figures)) for what, figures in load_rows(report.runs))
    yield from _table(load_headings(report.runs), rows)
    yield ""
    yield "Median (lowest-highest)."
    yield ""
    yield from _bullets(line for own in report.runs for line in head_lines(own))
    yield from _bullets(f"not measured: {skipped.arm}: {skipped.reason}" for skipped in report.skipped)
    yield from _bullets(f"warning: {own.arm}: {warning}" for own in report.runs for warning in own.warnings)
    for comparison in report.comparisons:
        yield ""
        yield f"### {_plain(comparison_title(comparison))}"
        yield ""
        if comparison.changes:
            yield from _table(CHANGE_HEADINGS, map(change_row, comparison.changes))
            yield ""
        yield from _bullets(comparison.differences)
    yield ""


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    for row in (headings, None, *rows):
        cells = ["---"] * len(headings) if row is None else list(map(_plain, row))
        yield f"| {' | '.join(cells)} |"


def _bullets(lines: Iterable[str]) -> Iterator[str]:
    return (f"- {_plain(line)}" for line in lines)


def _plain(text: str) -> str:
    return _MEANINGFUL.sub(r"\\\1", one_line(text))
