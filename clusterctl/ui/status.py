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
from clusterctl.ui.units import size

HEAD_COLUMNS = tuple(map(Column, ("head", "health", "pid", "holds", "since", "url")))
WORKER_COLUMNS = (
    *map(Column, ("worker", "state", "pid", "endpoint", "attached", "holds")),
    Column("free on cards", is_whole=True),
)
STYLES = {
    "up": "green",
    "ok": "green",
    "serving": "green",
    "proven": "green",
    "loading": "yellow",
    "waiting": "yellow",
    "degraded": "red",
    "wedged": "red",
    "stuck": "red",
    "suspended": "red",
    "no answer": "red",
    "unreachable": "red",
    "foreign": "red",
    "unknown": "red",
}


def show_status(screen: Screen, report: StatusReport) -> None:
    """Print the report to stdout, and, unless it is to be quiet, a question to ask where the cluster is up."""
    console = data_console(screen)
    console.print(status_view(report))
    if report.state == "up" and report.head.url and not screen.quiet:
        show_question(console, screen, report.head.url, report.head.node, report.head.access)


def status_view(report: StatusReport) -> Group:
    """Return the report as text that a live display may show again and again."""
    return Group(
        Text.assemble(("cluster", "bold"), ": ", _word(report.state)),
        Text(),
        Grid(HEAD_COLUMNS, (_head_row(report.head),)),
        *_workers(report),
        *_work(report),
        *_problems(report),
    )


def traffic_text(traffic: TrafficReport) -> str:
    """Return what the head does in one line; nothing where nothing is known."""
    busy = "?" if traffic.slots_busy is None else traffic.slots_busy
    total = "?" if traffic.slots_total is None else traffic.slots_total
    figures = (
        (traffic.slots_total, f"{busy} of {total} slots busy"),
        (traffic.decode_tok_s, f"decode {traffic.decode_tok_s or 0:.1f} tok/s"),
        (traffic.prompt_tok_s, f"prompt {traffic.prompt_tok_s or 0:.0f} tok/s"),
    )
    return ", ".join(text for figure, text in figures if figure is not None)


def _head_row(head: HeadStatus) -> tuple[Text, ...]:
    return (
        outside(head.node, "bold"),
        _word(head.health),
        _number(head.pid),
        _holds(head),
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
        stacked(worker.attached),
        _holds(worker),
        devices_cell(worker.device_memory),
    )


def _holds(process: HeadStatus | WorkerStatus) -> Text:
    """What a process holds of its machine's memory, and of its cards."""
    parts = ((process.resident_mib, "{}"), (process.device_mib, "{} on cards"))
    return stacked(form.format(size(mib)) for mib, form in parts if mib is not None)


def _work(report: StatusReport) -> Iterator[RenderableType]:
    traffic, progress = traffic_text(report.traffic), report.progress
    if traffic or progress.detail:
        yield Text()
    if traffic:
        yield Text.assemble(("traffic", "bold"), ": ", traffic)
    if progress.detail:
        yield Text.assemble(("progress", "bold"), ": ", _word(progress.verdict), ": ", outside(progress.detail))


def _problems(report: StatusReport) -> Iterator[RenderableType]:
    if report.problems:
        yield Text()
        yield Text("problems", "bold")
        yield from problem_lines(report.problems)


def _word(word: str) -> Text:
    return outside(word, STYLES.get(word, ""))


def _number(number: int | None) -> Text:
    return Text("-" if number is None else str(number))
