"""`clusterctl bench`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

import click

from clusterctl.bench.arms import more_slots_of
from clusterctl.bench.compare import ESTIMATE, EXPECT, RESERVED, compare_all, compare_arms, find_bases
from clusterctl.bench.control import bench_arms
from clusterctl.bench.run import Wanted, bench_running
from clusterctl.bench.store import append_run, demand_writable, read_runs, runs_path
from clusterctl.cli.app import App, pass_app
from clusterctl.cli.main import GlobalCommand
from clusterctl.cli.running import run
from clusterctl.cluster.bringup import Options
from clusterctl.config.inventory import Inventory
from clusterctl.config.recipe import Recipe
from clusterctl.errors import ClusterctlError, UsageError
from clusterctl.measurements import BenchReport, Run, Settings, SkippedArm
from clusterctl.ui.bench import show_bench
from clusterctl.ui.bench_markdown import bench_markdown
from clusterctl.ui.progress import Progress

MOST_CLIENTS = 64
PICTURES = (".svg", ".png")


class Clients(click.ParamType[tuple[int, ...]]):
    """Numbers of clients, `1,2,4`."""

    name = "clients"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        """Return each number once, from few to many, or fail with what they must be."""
        words = str(value).split(",")
        if not all(word.isascii() and word.isdecimal() and 1 <= int(word) <= MOST_CLIENTS for word in words):
            self.fail(f"must be numbers from 1 to {MOST_CLIENTS} with commas between, such as 1,2,4", param, ctx)
        return tuple(sorted({int(word) for word in words}))


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """The options of `bench`, by the names that click gives them."""

    prompt_tokens: int
    decode_tokens: int
    concurrency: tuple[int, ...] | None
    repetitions: int
    warmup: int
    name: str | None
    compare: tuple[str, ...]
    control: bool
    replace: bool
    allow_skew: bool
    markdown: Path | None
    plot: Path | None


@click.command(cls=GlobalCommand)
@click.option(
    "--prompt-tokens", type=click.IntRange(min=1), default=512, show_default=True, help="Length of each prompt."
)
@click.option(
    "--decode-tokens", type=click.IntRange(min=2), default=128, show_default=True, help="Length of each answer."
)
@click.option(
    "--concurrency", type=Clients(), metavar="N,…", help="Clients at the same time, such as 1,2,4. Default: 1."
)
@click.option("--repetitions", type=click.IntRange(min=1), default=5, show_default=True, help="Rounds that count.")
@click.option(
    "--warmup", type=click.IntRange(min=0), default=1, show_default=True, help="Rounds before, not counted."
)
@click.option("--name", metavar="NAME", help="Keep the run under this name.")
@click.option(
    "--compare",
    multiple=True,
    metavar="BASE",
    help="`last`, the NAME of a run, the recipe's `expect` or the plan's `estimate`; may be repeated.",
)
@click.option(
    "--control", is_flag=True, help="Measure one node alone, the same node with more slots, and the cluster."
)
@click.option("--replace", is_flag=True, help="With --control: end what runs, and bring it up again afterwards.")
@click.option("--allow-skew", is_flag=True, help="With --control: start although builds differ or can't be told.")
@click.option(
    "--markdown", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write Markdown as well."
)
@click.option(
    "--plot", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Draw an .svg or a .png."
)
@pass_app
def bench(app: App, /, **given: object) -> None:
    """Measure prefill and decode through the head; keep and compare results.

    Sends prompts of an exact length to the cluster that runs and times its streamed answers. Every run is kept
    on this machine, in ${XDG_STATE_HOME:-~/.local/state}/clusterctl/bench/CLUSTER.jsonl.
    """
    options = BenchOptions(**given)  # type: ignore[arg-type]  # click has converted each value
    _check(options)
    inventory = app.load_inventory()
    needs_recipe = options.control or {EXPECT, ESTIMATE} & set(options.compare)
    recipe = app.load_recipe(inventory) if needs_recipe else app.load_recipe_if_named(inventory)
    path = runs_path(inventory.cluster, os.environ)
    demand_writable(path)
    bases = find_bases(read_runs(path), options.compare, recipe.name if recipe else None)
    runs: list[Run] = []

    def keep(measured: Run) -> None:
        append_run(path, measured)
        runs.append(measured)

    with Progress(app.screen()) as progress:
        skipped = run(_measure(options, inventory, recipe, progress, keep))
    report = _report(options, recipe, bases, runs, skipped, str(path))
    _write_files(options, report)
    app.show(report, show_bench)


def _check(options: BenchOptions) -> None:
    """Refuse early what would fail only after everything is measured."""
    if options.name in RESERVED:
        raise UsageError(
            f"--name {options.name} has a meaning of its own in --compare", hint="choose another name"
        )
    if (options.replace or options.allow_skew) and not options.control:
        raise UsageError("--replace and --allow-skew mean nothing without --control", hint="leave them out")
    for file in filter(None, (options.markdown, options.plot)):
        if not file.parent.is_dir():
            raise UsageError(f"there is no directory {file.parent}", hint="make it, or write elsewhere")
    if options.plot and options.plot.suffix.lower() not in PICTURES:
        raise UsageError(f"--plot {options.plot} must end in {' or '.join(PICTURES)}")
    if options.plot and find_spec("matplotlib") is None:
        raise UsageError("--plot needs matplotlib", hint="pip install 'clusterctl[plot]'")


async def _measure(
    options: BenchOptions,
    inventory: Inventory,
    recipe: Recipe | None,
    progress: Progress,
    keep: Callable[[Run], None],
) -> tuple[SkippedArm, ...]:
    wanted = Wanted(
        Settings(options.prompt_tokens, options.decode_tokens, options.repetitions, options.warmup),
        options.concurrency or (1,),
        options.name,
        with_estimate=ESTIMATE in options.compare,
    )
    if not options.control:
        keep(await bench_running(inventory, recipe, wanted, progress))
        return ()
    assert recipe is not None
    slots = more_slots_of(recipe, options.concurrency or ())
    wanted = replace(wanted, concurrency=options.concurrency or (1, slots))
    bringing = Options(allow_skew=options.allow_skew, replace=options.replace)
    return await bench_arms(inventory, recipe, wanted, slots, bringing, progress, keep)


def _report(
    options: BenchOptions,
    recipe: Recipe | None,
    bases: Mapping[str, Run],
    runs: Sequence[Run],
    skipped: tuple[SkippedArm, ...],
    kept_in: str,
) -> BenchReport:
    report = BenchReport(tuple(runs), skipped, (), kept_in)
    asked = compare_all(report.cluster_run, options.compare, bases, recipe.expect if recipe else {})
    return replace(report, comparisons=(*compare_arms(runs), *asked))


def _write_files(options: BenchOptions, report: BenchReport) -> None:
    try:
        if options.markdown:
            options.markdown.write_text(bench_markdown(report), encoding="utf-8")
        if options.plot:
            # matplotlib is an extra of the package, and slow to import.
            from clusterctl.ui.bench_plot import draw_bench  # noqa: PLC0415

            draw_bench(report, options.plot)
    except OSError as error:
        raise ClusterctlError(
            f"{error.filename} could not be written: {error.strerror}",
            hint=f"the run itself is kept in {report.kept_in}",
        ) from error
