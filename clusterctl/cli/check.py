"""`clusterctl check`."""

from __future__ import annotations

import click

from clusterctl.cli.app import App, pass_app
from clusterctl.cli.main import GlobalCommand
from clusterctl.cli.running import run
from clusterctl.cluster.examine import Examination, demand_fitness, examined
from clusterctl.cluster.fault_check import with_known_faults
from clusterctl.cluster.model_file import Models
from clusterctl.cluster.recording import look_at_models, recorded_report, with_unread_model
from clusterctl.config.inventory import Inventory
from clusterctl.config.recipe import Recipe
from clusterctl.errors import ClusterctlError
from clusterctl.reports import CheckReport
from clusterctl.ui.screen import Screen


@click.command(cls=GlobalCommand)
@pass_app
def check(app: App) -> int:
    """Reach every node; compare builds, devices, addresses, ports and files.

    Changes nothing. With a recipe (-r) the model's files, the head's port and what is known to fail with its
    settings are looked at too, and what --json prints is what `plan --facts` plans from. The exit code is the
    one with which `up` would refuse: 3 a node can't be reached, 4 builds differ or can't be told, 6 anything
    else that is wrong on a node, 2 a model file is damaged; 0 all is well. Whether the model fits is for `plan`
    to tell.
    """
    inventory = app.load_inventory()
    recipe = app.load_recipe_if_named(inventory)
    examination, models, unread = run(_examine(inventory, recipe))
    told = examination if unread is None else with_unread_model(inventory, examination, unread)
    app.show(recorded_report(inventory, told, models), _show)
    try:
        demand_fitness(examination, allow_skew=False)
    except ClusterctlError as error:
        return error.exit_code
    return 0 if unread is None else unread.exit_code


def _show(screen: Screen, report: CheckReport) -> None:
    from clusterctl.ui.check import show_check  # noqa: PLC0415  # it draws with rich, which --json does without

    show_check(screen, report)


async def _examine(
    inventory: Inventory, recipe: Recipe | None
) -> tuple[Examination, Models | None, ClusterctlError | None]:
    async with examined(inventory, recipe, links=True) as (opened, examination):
        models, unread = None, None
        if recipe is not None:
            try:
                models = await look_at_models(opened, inventory, recipe, examination)
            except ClusterctlError as error:
                unread = error
        return with_known_faults(inventory, recipe, examination, models), models, unread
