"""Why a plan is as it is: how each budget came about, which known faults were looked for, what is uncertain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from clusterctl.plan_reports import AdvisoryReport, BudgetStepReport, DeviceReport, PlanReport
from clusterctl.ui.tables import Column, Grid, indented, outside
from clusterctl.ui.units import count, size

STEP_COLUMNS = (Column("left", is_number=True), Column("after"))
WORDS = {"yes": "applies", "unknown": "can't be told"}


def reasons_view(report: PlanReport) -> Group:
    """Return the reasons as text; what is shown without them is not repeated."""
    return Group(*_devices(report), *_notes(report), *_advisories(report.advisories))


def _devices(report: PlanReport) -> Iterator[RenderableType]:
    for device in report.devices:
        yield outside(f"budget of {device.node}/{device.device}", "bold")
        yield indented(_steps(device.budget_steps))
        yield indented(outside(_use(device)))
        yield Text()
    for unused in report.unused:
        yield outside(f"budget of {unused.node}/{unused.device}, which is left out", "bold")
        yield indented(_steps(unused.budget_steps))
        yield Text()


def _steps(steps: Sequence[BudgetStepReport]) -> Grid:
    rows = tuple((Text(size(step.left_mib)), outside(step.cause)) for step in steps)
    return Grid(STEP_COLUMNS, rows)


def _use(device: DeviceReport) -> str:
    spare_mib = device.budget_mib - device.total_mib - device.margin_mib
    return (
        f"of this, {size(device.total_mib)} go to its part and {size(device.margin_mib)} stay free for what the "
        f"backend takes beside; {size(spare_mib)} are left over"
    )


def _notes(report: PlanReport) -> Iterator[RenderableType]:
    for note in report.notes:
        yield outside(f"not certain: {note}")


def _advisories(advisories: Sequence[AdvisoryReport]) -> Iterator[RenderableType]:
    met = [advisory for advisory in advisories if advisory.applies in WORDS]
    faults = count(len(advisories), "known fault")
    yield Text(f"{faults} of llama.cpp looked for: {len(advisories) - len(met)} don't apply here")
    for advisory in met:
        words = f"{WORDS[advisory.applies]}: {advisory.message} ({advisory.source})"
        yield indented(Text.assemble(outside(words), " ", outside(f"[{advisory.code}]", "dim")))
