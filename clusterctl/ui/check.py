"""The answer of `check`: a row per node, the skew, the problems, a verdict."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from clusterctl.model import Severity
from clusterctl.reports import BuildReport, CheckReport, NodeReport, SkewEvidence, SkewReport
from clusterctl.ui.console import data_console
from clusterctl.ui.devices import devices_cell
from clusterctl.ui.problems import hint_line, problem_lines, severity_counts
from clusterctl.ui.screen import Screen
from clusterctl.ui.tables import Column, Grid, indented, outside, stacked
from clusterctl.ui.units import count, rate

NODE_COLUMNS = (
    *map(Column, ("node", "role", "build", "rpc", "address")),
    Column("free memory", is_whole=True),
    Column("verdict"),
)
LINK_COLUMNS = tuple(map(Column, ("node", "from the head", "throughput")))
DETAIL_COLUMNS = tuple(map(Column, ("node", "system", "llama-server", "rpc server", "devices")))
MATCH = "match"
VERDICT_STYLES = {"match": "green", "mismatch": "red"}
SKEW_WORDS = {"match": "all builds match", "mismatch": "builds differ", "unknown": "builds can't be verified"}


def show_check(screen: Screen, report: CheckReport) -> None:
    """Print the report to stdout; with `-v` also what was found in order."""
    data_console(screen).print(check_view(report, is_verbose=screen.verbosity > 0))


def check_view(report: CheckReport, *, is_verbose: bool) -> Group:
    """Return the report as text."""
    return Group(
        Grid(NODE_COLUMNS, tuple(_node_row(node, report.skew) for node in report.nodes)),
        *(_details(report) if is_verbose else ()),
        *_links(report),
        *_skew(report.skew, is_verbose),
        *_problems(report),
        Text(),
        _verdict(report),
    )


def _node_row(node: NodeReport, skew: SkewReport) -> tuple[Text, ...]:
    return (
        outside(node.name, "bold"),
        outside(node.role),
        outside(build_name(node.build)),
        outside(node.rpc_protocol or "-"),
        outside(node.rpc_address or "-"),
        devices_cell(node.devices),
        _node_verdict(node, skew),
    )


def _links(report: CheckReport) -> Iterator[RenderableType]:
    rows = tuple(
        (outside(node.name, "bold"), Text(f"{node.link_round_trip_ms:.1f} ms"), Text(rate(node.link_mbit_s)))
        for node in report.nodes
        if node.link_round_trip_ms is not None and node.link_mbit_s is not None
    )
    if rows:
        yield Text()
        yield Grid(LINK_COLUMNS, rows)


def build_name(build: BuildReport | None) -> str:
    """Return a build as `b10434 (7e4c0a9)`, or as much of it as is known."""
    if build is None:
        return "-"
    name = build.tag or build.version
    if build.commit is None:
        return name or "unknown"
    return f"{name} ({build.commit})" if name else f"commit {build.commit}"


def _node_verdict(node: NodeReport, skew: SkewReport) -> Text:
    if not node.reachable:
        return Text("offline", "red")
    differing = [found.verdict for found in skew.evidence if found.node == node.name and found.verdict != MATCH]
    if differing:
        return _match_word(differing[0])
    severities = {problem.severity for problem in node.problems}
    if Severity.ERROR in severities:
        return Text("error", "red")
    return Text("warning", "yellow") if Severity.WARNING in severities else Text("ok", "green")


def _details(report: CheckReport) -> Iterator[RenderableType]:
    yield Text()
    yield Grid(DETAIL_COLUMNS, tuple(_detail_row(node) for node in report.nodes))


def _detail_row(node: NodeReport) -> tuple[Text, ...]:
    server = node.programs.llama_server if node.programs else None
    worker = node.programs.rpc_server if node.programs else None
    return (
        outside(node.name, "bold"),
        outside(" ".join(filter(None, (node.os, node.arch))) or "-"),
        outside(server or "-"),
        outside(worker or "-"),
        stacked(f"{device.name}: {device.description}" for device in node.devices),
    )


def _skew(skew: SkewReport, is_verbose: bool) -> Iterator[RenderableType]:
    shown = [found for found in skew.evidence if is_verbose or found.verdict != MATCH]
    if skew.status == MATCH and not shown:
        return
    yield Text()
    yield Text.assemble(("build skew", "bold"), ": ", _match_word(skew.status))
    groups = tuple((outside(group.build), outside(", ".join(group.nodes))) for group in skew.groups)
    if groups:
        yield indented(Grid((Column("build"), Column("nodes")), groups))
    for found in shown:
        yield from _evidence(found)


def _evidence(found: SkewEvidence) -> Iterator[RenderableType]:
    subject = outside(f"{found.node}, {found.subject}")
    yield indented(Text.assemble(subject, ": ", _match_word(found.verdict), ": ", outside(found.reason)))
    if found.fix:
        yield indented(hint_line(found.fix), 4)


def _match_word(verdict: str) -> Text:
    return outside(verdict, VERDICT_STYLES.get(verdict, "yellow"))


def _problems(report: CheckReport) -> Iterator[RenderableType]:
    for node in report.nodes:
        if node.problems:
            yield Text()
            yield outside(node.name, "bold")
            yield from problem_lines(node.problems)


def _verdict(report: CheckReport) -> Text:
    unreachable = sum(not node.reachable for node in report.nodes)
    parts = [
        count(len(report.nodes), "node"),
        *([f"{unreachable} unreachable"] if unreachable else []),
        SKEW_WORDS.get(report.skew.status, SKEW_WORDS["unknown"]),
        severity_counts(problem for node in report.nodes for problem in node.problems),
    ]
    verdict = ", ".join(parts)
    return Text(verdict, "green") if report.ok else Text(f"{verdict}: `up` would refuse", "red")
