"""`clusterctl up`."""

from __future__ import annotations

import click

from clusterctl.cli.app import App, demand_use, pass_app
from clusterctl.cli.main import GlobalCommand
from clusterctl.cli.running import run
from clusterctl.cluster.bringup import Options
from clusterctl.cluster.patience import STALL_TIMEOUT_S
from clusterctl.cluster.up import bring_up
from clusterctl.reports import ActionReport, LeftReport
from clusterctl.ui.action import show_action
from clusterctl.ui.progress import Progress


@click.command(cls=GlobalCommand)
@click.option("--dry-run", is_flag=True, help="Show what would change; change nothing.")
@click.option("--replace", is_flag=True, help="End what runs of this cluster, then start anew.")
@click.option("--wait/--no-wait", default=True, help="Wait until a token has come back (default).")
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=1),
    metavar="S",
    help="Give up when the model has not loaded within S seconds.  [default: as long as it moves]",
)
@click.option(
    "--stall-timeout",
    "stall_timeout_s",
    type=click.FloatRange(min=1),
    metavar="S",
    default=STALL_TIMEOUT_S,
    show_default=True,
    help="Give up when no byte has moved for S seconds while it loads.",
)
@click.option("--allow-skew", is_flag=True, help="Start although builds differ or can't be told.")
@pass_app
def up(
    app: App,
    dry_run: bool,
    replace: bool,
    wait: bool,
    timeout_s: float | None,
    stall_timeout_s: float,
    allow_skew: bool,
) -> None:
    """Bring the cluster up: workers first, then the head.

    A second `up` finds everything as planned and changes nothing. If anything fails, or on Ctrl-C, what this
    run started is ended again.

    With --no-wait the model loads on by itself, and nobody sees whether it computes sense: `status` tells when it
    is up, and an `up` that finds it loading waits for it and looks.
    """
    if not wait:
        demand_use({"timeout_s": "--timeout", "stall_timeout_s": "--stall-timeout"}, when="with --no-wait")
    inventory = app.load_inventory()
    recipe = app.load_recipe(inventory)
    options = Options(
        allow_skew=allow_skew,
        replace=replace,
        wait=wait,
        timeout_s=timeout_s,
        stall_timeout_s=stall_timeout_s,
    )
    with Progress(app.screen()) as progress:
        brought = run(bring_up(inventory, recipe, options, progress, dry=dry_run))
    report = ActionReport(
        ok=True,
        changed=brought.changed and not dry_run,
        endpoint=brought.url,
        steps=progress.steps,
        left=tuple(LeftReport(node, reason) for node, reason in brought.left.items()),
        access=brought.access,
        dry_run=dry_run,
        waited=wait,
    )
    app.show(report, show_action)
