"""`clusterctl recover`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from clusterctl.cli.app import App, pass_app
from clusterctl.cli.main import GlobalCommand
from clusterctl.cli.running import run
from clusterctl.cli.units import UNITS
from clusterctl.cluster.breakage import Breakage
from clusterctl.cluster.bringup import Options
from clusterctl.cluster.recover import WATCH_INTERVAL_S, Recovery
from clusterctl.cluster.recover import recover as recover_once
from clusterctl.cluster.recover import watch as watch_over
from clusterctl.cluster.restarts import Budget
from clusterctl.errors import UsageError
from clusterctl.model import Outcome, Step
from clusterctl.reports import ActionReport
from clusterctl.ui.action import show_action
from clusterctl.ui.progress import Progress


@click.command(cls=GlobalCommand)
@click.option("--watch", is_flag=True, help="Stay, and bring the cluster back whenever it breaks.")
@click.option(
    "--interval",
    "interval_s",
    type=click.FloatRange(min=1),
    default=WATCH_INTERVAL_S,
    show_default=True,
    metavar="S",
    help="Seconds between two looks of --watch.",
)
@click.option(
    "--restarts",
    type=click.IntRange(min=1),
    default=Budget().restarts,
    show_default=True,
    metavar="N",
    help="Give up after so many restarts within an hour.",
)
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=1),
    metavar="S",
    help="Seconds to wait for the model to load.",
)
@click.option("--allow-skew", is_flag=True, help="Start although builds differ or can't be told.")
@click.option(
    "--print-unit",
    type=click.Choice(list(UNITS)),
    help="Print a service file that runs `recover --watch`, and do nothing else.",
)
@pass_app
def recover(
    app: App,
    watch: bool,
    interval_s: float,
    restarts: int,
    timeout_s: float | None,
    allow_skew: bool,
    print_unit: str | None,
) -> None:
    """Bring a broken cluster back, in the right order.

    The head goes down first, then the workers; builds are compared again, and all is started anew. A cluster
    that serves is left alone, as is one that can't be seen. One that breaks again at once, or too often, is
    given up with its cause and log (exit code 9).
    """
    if print_unit:
        click.echo(UNITS[print_unit](_command(app)), nl=False)
        return
    if watch and app.as_json:
        raise UsageError("--json prints one document, and --watch never ends", hint="leave one of them out")
    inventory = app.load_inventory()
    recipe = app.load_recipe(inventory)
    options = Options(allow_skew=allow_skew, timeout_s=timeout_s)
    recovery = Recovery(options, Budget(restarts=restarts), interval_s)
    with Progress(app.screen()) as progress:
        if watch:
            run(watch_over(inventory, recipe, recovery, progress, lambda seen: progress(_idle(seen))))
            return
        brought = run(recover_once(inventory, recipe, recovery, progress))
    server = recipe.server
    url = brought.url if brought else f"http://{server.host}:{server.port}"
    app.show(ActionReport(True, brought is not None, url, progress.steps), show_action)


def _idle(seen: Breakage) -> Step:
    return Step("watch", Outcome.WAITING, detail=f"{seen.verdict}: {seen.cause}" if seen.cause else seen.verdict)


def _command(app: App) -> tuple[str, ...]:
    """The call that a service file makes: absolute, since a service has neither our directory nor our PATH."""
    if app.inventory is None or app.recipe is None:
        raise UsageError("a service needs to know its files", hint="name them with -i FILE and -r FILE")
    program = str(Path(sys.argv[0]).absolute())
    files = (str(Path(app.inventory).absolute()), "-r", str(Path(app.recipe).absolute()))
    return (program, "-i", *files, "--no-progress", "recover", "--watch")
