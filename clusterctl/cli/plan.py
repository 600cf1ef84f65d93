"""`clusterctl plan`."""

from __future__ import annotations

import click

from clusterctl.cli.app import App, pass_app
from clusterctl.cli.main import GlobalCommand
from clusterctl.cli.running import run
from clusterctl.cluster.plan import plan_report
from clusterctl.cluster.prepare import prepare_plan
from clusterctl.ui.plan import show_plan


@click.command(cls=GlobalCommand)
@click.option("--allow-skew", is_flag=True, help="Plan although builds differ or can't be told.")
@pass_app
def plan(app: App, allow_skew: bool) -> None:
    """Show which device gets which layers, and the exact commands. Changes nothing.

    Memory is measured on the nodes, the model's header is read on the head. Exit code 5: it does not fit.
    """
    inventory = app.load_inventory()
    made = run(prepare_plan(inventory, app.load_recipe(inventory), allow_skew=allow_skew))
    app.show(plan_report(made), show_plan)
