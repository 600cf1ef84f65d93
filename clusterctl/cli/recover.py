"""`clusterctl recover`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
from click.core import ParameterSource

from clusterctl.cli.app import App, pass_app
from clusterctl.cli.main import GlobalCommand
from clusterctl.cli.running import run
from clusterctl.cli.units import UNITS
from clusterctl.cluster.bisect import bisect as find_culprit
from clusterctl.cluster.bringup import Options
from clusterctl.cluster.patience import STALL_TIMEOUT_S
from clusterctl.cluster.progress import DEADLINE_S
from clusterctl.cluster.recover import WATCH_INTERVAL_S, Recovery
from clusterctl.cluster.recover import recover as recover_once
from clusterctl.cluster.recover import watch as watch_over
from clusterctl.cluster.restarts import Budget
from clusterctl.cluster.running_head import clients_url, only_on_node
from clusterctl.errors import Degraded, UsageError
from clusterctl.reports import Access, ActionReport, LeftReport
from clusterctl.ui.action import show_action
from clusterctl.ui.progress import Progress

LIMITS = ("interval_s", "restarts", "timeout_s", "stall_timeout_s", "token_deadline_s", "allow_skew")
SPOILS = (
    "left out, because it spoils what is computed; take it out of the inventory, or mend it and run "
    "`clusterctl up --replace`"
)


@dataclass(frozen=True, slots=True)
class RecoverOptions:
    """The options of `recover`, by the names that click gives them."""

    watch: bool
    bisect: bool
    print_unit: str | None
    interval_s: float
    restarts: int
    timeout_s: float | None
    stall_timeout_s: float
    token_deadline_s: float
    allow_skew: bool


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
@click.option(
    "--stall-timeout",
    "stall_timeout_s",
    type=click.FloatRange(min=1),
    metavar="S",
    default=STALL_TIMEOUT_S,
    show_default=True,
    help="Give up a load when no byte has moved for S seconds.",
)
@click.option(
    "--token-timeout",
    "token_deadline_s",
    type=click.FloatRange(min=1),
    metavar="S",
    default=DEADLINE_S,
    show_default=True,
    help="Seconds within which a token that is due must come, else the cluster is broken.",
)
@click.option("--bisect", is_flag=True, help="Find the worker that spoils what is computed; run without it.")
@click.option("--allow-skew", is_flag=True, help="Start although builds differ or can't be told.")
@click.option(
    "--print-unit",
    type=click.Choice(list(UNITS)),
    help="Print a service file that runs `recover --watch`, and do nothing else.",
)
@click.pass_context
@pass_app
def recover(app: App, ctx: click.Context, /, **given: object) -> int:
    """Bring a broken cluster back, in the right order.

    The head goes down first, then the workers; builds are compared again, and all is started anew. A cluster
    that serves is left alone, as is one that can't be seen (exit code 3); one that loads is waited for. One that
    breaks again at once, or too often, is given up with its cause and log (exit code 9).
    """
    wanted = RecoverOptions(**given)  # type: ignore[arg-type]  # click has converted each value
    if wanted.print_unit:
        click.echo(UNITS[wanted.print_unit](_command(app, ctx)), nl=False)
        return 0
    if wanted.watch and app.as_json:
        raise UsageError("--json prints one document, and --watch never ends", hint="leave one of them out")
    if wanted.watch and wanted.bisect:
        raise UsageError("--bisect is done once, and --watch stays", hint="leave one of them out")
    return _recover(app, wanted)


def _recover(app: App, wanted: RecoverOptions) -> int:
    inventory = app.load_inventory()
    recipe = app.load_recipe(inventory)
    options = Options(
        allow_skew=wanted.allow_skew, timeout_s=wanted.timeout_s, stall_timeout_s=wanted.stall_timeout_s
    )
    recovery = Recovery(
        inventory,
        recipe,
        options,
        Budget(restarts=wanted.restarts),
        wanted.interval_s,
        wanted.token_deadline_s,
    )
    with Progress(app.screen()) as progress:
        if wanted.watch:
            run(watch_over(recovery, progress))
            return 0
        if wanted.bisect:
            found = run(find_culprit(inventory, recipe, options, progress))
            left = (LeftReport(found.culprit, SPOILS),) if found.culprit else ()
            report = ActionReport(not left, True, found.brought.url, progress.steps, left, found.brought.access)
        else:
            brought = run(recover_once(recovery, progress))
            head = inventory.head
            only_on = only_on_node(head.name, recipe.server.host, is_remote=head.connection != "local")
            report = ActionReport(
                ok=True,
                changed=brought is not None and brought.changed,
                endpoint=clients_url(inventory, recipe.server),
                steps=progress.steps,
                access=brought.access if brought else Access(only_on=only_on),
            )
    app.show(report, show_action)
    return 0 if report.ok else Degraded.exit_code


def _command(app: App, ctx: click.Context) -> tuple[str, ...]:
    """The call that a service file makes: absolute, since a service has neither our directory nor our PATH."""
    if app.inventory is None or app.recipe is None:
        raise UsageError("a service needs to know its files", hint="name them with -i FILE and -r FILE")
    program = str(Path(sys.argv[0]).absolute())
    files = (str(Path(app.inventory).absolute()), "-r", str(Path(app.recipe).absolute()))
    return (program, "-i", *files, "--no-progress", "recover", "--watch", *_limits(ctx))


def _limits(ctx: click.Context) -> Iterator[str]:
    """The options of the service that were given by name."""
    for option in ctx.command.params:
        name = option.name or ""
        is_given = ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if is_given and name in LIMITS:
            yield option.opts[0]
            if not isinstance(ctx.params[name], bool):
                yield f"{ctx.params[name]:g}"
