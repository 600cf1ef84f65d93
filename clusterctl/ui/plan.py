"""The answer of `plan`: who holds what, how full it gets, how fast it may be, and the exact commands."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from clusterctl.model import Estimate
from clusterctl.plan_reports import DeviceReport, DraftReport, HostReport, PlanReport
from clusterctl.ui.bars import Bar, Legend
from clusterctl.ui.console import data_console
from clusterctl.ui.plan_reasons import reasons_view
from clusterctl.ui.screen import Screen
from clusterctl.ui.shell import command_text
from clusterctl.ui.tables import GAP, Column, Grid, indented, outside
from clusterctl.ui.units import count, duration, size

COLUMNS = (
    Column("device"),
    Column("layers"),
    *(Column(heading, is_number=True) for heading in ("weights", "KV", "compute", "total", "budget")),
)
LONGEST_LABEL = 24


def show_plan(screen: Screen, report: PlanReport, *, is_explained: bool = False) -> None:
    """Print the report to stdout; the command lines are never wrapped, so that they can be copied.

    `is_explained` adds how every budget came about, and what was looked for and not found.
    """
    console = data_console(screen)
    console.print(plan_view(report))
    if is_explained:
        console.print()
        console.print(reasons_view(report))
    for command in report.commands:
        console.print()
        console.print(outside(f"{command.node} ({command.role}):", "bold"))
        console.out(command_text(command.argv, command.env, console.width), highlight=False)


def plan_view(report: PlanReport) -> Group:
    """Return all of the report but its command lines."""
    draft = () if report.draft is None else (_draft_row(report.draft),)
    rows = (*map(_device_row, report.devices), _host_row(report.host), *draft)
    return Group(
        _headline(report),
        Text(),
        Grid(COLUMNS, rows),
        Text(),
        _bars(report),
        Legend(),
        Text(),
        *_remarks(report),
    )


def _headline(report: PlanReport) -> Text:
    verdict = Text("the plan fits", "green") if report.fits else Text("the plan does not fit", "red")
    devices = count(len(report.devices), "device")
    split = outside(f"{report.n_layer} layers and the output on {devices}, split by {report.strategy}")
    return Text.assemble(verdict, ": ", split)


def _device_row(device: DeviceReport) -> tuple[Text, ...]:
    name = _label(device)
    if device.rpc_name != device.device:
        name += f" ({device.rpc_name})"
    return (outside(name, "bold"), Text(_layers(device)), *_sizes(device))


def _layers(device: DeviceReport) -> str:
    parts = ["output"] if device.output else []
    if device.layers:
        first, last = device.layers
        parts.insert(0, f"{first}-{last} ({last - first + 1})")
    return " + ".join(parts) or "none"


def _host_row(host: HostReport) -> tuple[Text, ...]:
    return (Text("head's memory"), Text("-"), *_sizes(host))


def _draft_row(draft: DraftReport) -> tuple[Text, ...]:
    """The draft model; it has no budget of its own, for it is taken off that of its device."""
    if draft.device is None:
        place, sizes = "the head's CPU", ("-", "-", "-", size(draft.host_mib))
    else:
        place = f"{draft.node}/{draft.device}"
        sizes = (size(draft.model_mib), size(draft.kv_mib), size(draft.compute_mib), size(draft.total_mib))
    return (outside(f"draft model on {place}"), *map(Text, ("-", *sizes, "-")))


def _sizes(memory: DeviceReport | HostReport) -> tuple[Text, ...]:
    is_over = memory.budget_mib is not None and memory.total_mib > memory.budget_mib
    return (
        Text(size(memory.model_mib)),
        Text(size(memory.kv_mib)),
        Text(size(memory.compute_mib)),
        Text(size(memory.total_mib), "red" if is_over else ""),
        Text("-" if memory.budget_mib is None else size(memory.budget_mib)),
    )


def _bars(report: PlanReport) -> Table:
    bars = Table.grid(padding=(0, GAP, 0, 0))
    bars.add_column(max_width=LONGEST_LABEL, overflow="fold")
    bars.add_column()
    bars.add_column(overflow="fold")
    for device in report.devices:
        bars.add_row(outside(_label(device), "bold"), *_bar(device, device.budget_mib))
    if report.host.budget_mib is not None:
        bars.add_row(Text("head's memory"), *_bar(report.host, report.host.budget_mib))
    return bars


def _bar(memory: DeviceReport | HostReport, budget_mib: float) -> tuple[Bar, Text]:
    free_mib = budget_mib - memory.total_mib
    bar = Bar((memory.model_mib, memory.kv_mib, memory.compute_mib, max(free_mib, 0.0)))
    if free_mib < 0:
        return bar, Text(f"{size(-free_mib)} over", "red")
    return bar, Text(f"{memory.total_mib / budget_mib:.0%} full" if budget_mib > 0 else "no room")


def _label(device: DeviceReport) -> str:
    return f"{device.node}/{device.device}"


def _remarks(report: PlanReport) -> Iterator[RenderableType]:
    for device in report.devices:
        if device.reason:
            yield outside(f"{_label(device)}: {device.reason}")
    for unused in report.unused:
        label = outside(f"{unused.node}/{unused.device}: {unused.reason}")
        yield Text.assemble(("left out", "yellow"), ": ", label)
    yield from _estimate(report.estimate)
    for advice in report.advice:
        code = outside(f"[{advice.code}]", "dim")
        yield Text.assemble(("advice", "cyan"), ": ", outside(advice.message), " ", code)


def _estimate(estimate: Estimate) -> Iterator[RenderableType]:
    figures = (
        ("decode", estimate.decode_tok_s, "{:.1f} tok/s"),
        ("decode ceiling", estimate.decode_ceiling_tok_s, "{:.1f} tok/s"),
        ("prefill", estimate.prefill_tok_s, "{:.0f} tok/s"),
        ("prefill ceiling", estimate.prefill_ceiling_tok_s, "{:.0f} tok/s"),
    )
    known = [(name, form.format(figure)) for name, figure, form in figures if figure is not None]
    if estimate.load_s is not None:
        known.append(("loading", duration(estimate.load_s)))
    if estimate.bound_by:
        known.append(("bound by", estimate.bound_by))
    yield Text.assemble(("estimate", "bold"), ":" if known else ": no speed is known")
    for name, figure in known:
        yield indented(outside(f"{name}: {figure}"))
