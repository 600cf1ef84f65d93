"""`clusterctl plan`."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from clusterctl.cli.app import App, pass_app
from clusterctl.cli.main import GlobalCommand
from clusterctl.cli.running import run
from clusterctl.cluster.plan_report import plan_report
from clusterctl.cluster.prepare import prepare_plan
from clusterctl.cluster.recorded import HOW_TO_RECORD, plan_from_record, read_record
from clusterctl.config.files import read_text
from clusterctl.ui.plan import show_plan


@click.command(cls=GlobalCommand)
@click.option("--allow-skew", is_flag=True, help="Plan although builds differ or can't be told.")
@click.option(
    "--facts", type=click.Path(), metavar="FILE", help="Plan from what `check --json` recorded; no node is asked."
)
@click.option("--explain", is_flag=True, help="Say of every device how its budget came about.")
@pass_app
def plan(app: App, allow_skew: bool, facts: str | None, explain: bool) -> None:
    """Show which device gets which layers, and the exact commands. Changes nothing.

    Memory and network are measured, the model's header is read on the head. With --facts everything is taken
    from a file instead: that of `clusterctl -r RECIPE check --json`, or one written by hand for machines yet to
    be bought. Exit code 5: it does not fit.
    """
    inventory = app.load_inventory()
    recipe = app.load_recipe(inventory)
    if facts is None:
        made = run(prepare_plan(inventory, recipe, allow_skew=allow_skew))
    else:
        made = plan_from_record(inventory, recipe, read_record(read_text(Path(facts), hint=HOW_TO_RECORD), facts))
    app.show(plan_report(made), partial(show_plan, is_explained=explain))
