"""The answer of `status`: the state in a word, who runs, how much memory, what traffic."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from clusterctl.reports import HeadStatus, StatusReport, TrafficReport, WorkerStatus
from clusterctl.ui.console import data_console
from clusterctl.ui.devices import devices_cell
from clusterctl.ui.endpoint import show_question
from clusterctl.ui.problems import problem_lines
from clusterctl.ui.screen import Screen
from clusterctl.ui.tables import Column, Grid, outside, stacked

HEAD_COLUMNS = tuple(map(Column, ("head", "health", "pid", "since", "url")))
WORKER_COLUMNS = (
    *map(Column, ("worker", "state", "pid", "endpoint", "listening on", "rpc")),
    Column("free memory", is_whole=True),
)
STYLES = {
    "up": "green",
    "ok": "green",
    "serving": "green",
    "loading": "yellow",
    "degraded": "red",
    "no answer": "red",
    "unreachable": "red",
    "foreign": "red",
    "unknown": "red",
}


def show_status(screen: Screen, report: StatusReport) -> None:
    """Print the report to stdout, and a question to ask where the cluster is up."""
    console = data_console(screen)
    console.print(status_view(report))
    if report.state == "up" and report.head.url:
        show_question(console, report.head.url)


def status_view(report: StatusReport) -> Group:
    """Return the report as text that a live display may show again and again."""
    return Group(
        Text.assemble(("cluster", "bold"), ": ", _word(report.state)),
        Text(),
        Grid(HEAD_COLUMNS, (_head_row(report.head),)),
        *_workers(report),
        *_traffic(report.traffic),
        *_problems(report),
    )


def _head_row(head: HeadStatus) -> tuple[Text, ...]:
    return (
        outside(head.node, "bold"),
        _word(head.health),
        _number(head.pid),
        outside(head.since or "-"),
        outside(head.url or "-"),
    )


def _workers(report: StatusReport) -> Iterator[RenderableType]:
    if report.workers:
        yield Text()
        yield Grid(WORKER_COLUMNS, tuple(map(_worker_row, report.workers)))


def _worker_row(worker: WorkerStatus) -> tuple[Text, ...]:
    return (
        outside(worker.node, "bold"),
        _word(worker.state),
        _number(worker.pid),
        outside(worker.endpoint),
        stacked(worker.listening_on),
        outside(worker.rpc_protocol or "-"),
        devices_cell(worker.device_memory),
    )


def _traffic(traffic: TrafficReport) -> Iterator[RenderableType]:
    busy = "?" if traffic.slots_busy is None else traffic.slots_busy
    total = "?" if traffic.slots_total is None else traffic.slots_total
    figures = (
        (traffic.slots_total, f"{busy} of {total} slots busy"),
        (traffic.decode_tok_s, f"decode {traffic.decode_tok_s or 0:.1f} tok/s"),
        (traffic.prompt_tok_s, f"prompt {traffic.prompt_tok_s or 0:.0f} tok/s"),
    )
    if known := [text for figure, text in figures if figure is not None]:
        yield Text()
        yield Text.assemble(("traffic", "bold"), ": ", ", ".join(known))


def _problems(report: StatusReport) -> Iterator[RenderableType]:
    if report.problems:
        yield Text()
        yield Text("problems", "bold")
        yield from problem_lines(report.problems)


def _word(word: str) -> Text:
    return outside(word, STYLES.get(word, ""))


def _number(number: int | None) -> Text:
    return Text("-" if number is None else str(number))
