"""The answer of `bench` as a picture: each figure over the number of clients, a line for each arm."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from clusterctl.measurements import BenchReport, Run, Spread
from clusterctl.ui.bench_rows import figure_text
from clusterctl.ui.safe import one_line

PANELS = (("throughput_tok_s", "decode_tok_s"), ("request_s", "first_token_s"))
HEADROOM = 1.1


def draw_bench(report: BenchReport, path: Path) -> None:
    """Write the picture, in the format that the file's suffix says; bars show lowest to highest.

    Raises:
        OSError: if the file can't be written.
    """
    figure = Figure(figsize=(10, 7), layout="constrained")
    run = report.cluster_run
    title = f"{run.recipe} on {run.cluster}, build {run.build}"
    figure.suptitle(one_line(title), parse_math=False)
    grid = figure.subplots(len(PANELS), len(PANELS[0]))
    for row, names in zip(grid, PANELS, strict=True):
        for axes, name in zip(row, names, strict=True):
            _draw(axes, name, report)
    figure.savefig(path)


def _draw(axes: Axes, name: str, report: BenchReport) -> None:
    clients = sorted({load.concurrency for run in report.runs for load in run.loads})
    drawn = [run for run in report.runs if _spreads(run, name)]
    for run in drawn:
        _draw_run(axes, name, run)
    axes.set_title(figure_text(name))
    axes.set_xlabel("clients")
    axes.set_xticks(clients)
    axes.grid(axis="y", alpha=0.3)
    if drawn:
        axes.set_ylim(0, HEADROOM * max(spread.highest for run in drawn for spread in _spreads(run, name)))
        axes.legend()


def _spreads(run: Run, name: str) -> list[Spread]:
    return [load.figures[name] for load in run.loads if name in load.figures]


def _draw_run(axes: Axes, name: str, run: Run) -> None:
    points = [(load.concurrency, load.figures[name]) for load in run.loads if name in load.figures]
    axes.errorbar(
        [clients for clients, _ in points],
        [spread.median for _, spread in points],
        yerr=[
            [spread.median - spread.lowest for _, spread in points],
            [spread.highest - spread.median for _, spread in points],
        ],
        marker="o",
        capsize=4,
        label=run.arm,
    )
