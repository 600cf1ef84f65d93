"""`clusterctl down`."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click

from clusterctl.cli.app import App, pass_app
from clusterctl.cli.completing import NODE
from clusterctl.cli.main import GlobalCommand
from clusterctl.cli.running import run
from clusterctl.cluster.clearing import Cleared
from clusterctl.cluster.down import tear_down
from clusterctl.errors import Degraded, NodeUnreachable
from clusterctl.reports import ActionReport, LeftReport
from clusterctl.ui.action import show_action
from clusterctl.ui.progress import Progress


@click.command(cls=GlobalCommand)
@click.option("--dry-run", is_flag=True, help="Show what would be ended; end nothing.")
@click.option(
    "--yes",
    is_flag=True,
    help="Don't ask. Only on a terminal are you asked at all, and never with --json or --dry-run.",
)
@click.option("--node", "nodes", multiple=True, metavar="NAME", type=NODE, help="Only this node; may be repeated.")
@click.option(
    "--force",
    is_flag=True,
    help="Also end orphans of lost runs, and workers of a head that stays; forget a --node that has left the "
    "inventory and is out of reach, or whose port somebody else holds.",
)
@click.option("--purge-cache", is_flag=True, help="Also remove the tensors that workers keep on disk.")
@pass_app
def down(app: App, dry_run: bool, yes: bool, nodes: tuple[str, ...], force: bool, purge_cache: bool) -> int:
    """Tear the cluster down, head first, and prove that nothing is left.

    Ends only what clusterctl has on record on the nodes and what still matches that record. Exit codes: 9 some
    of it is left, or a node could not be reached; 0 all of it is gone, or you were asked and said no.
    """
    inventory = app.load_inventory()
    if not (yes or dry_run or app.as_json) and sys.stdin.isatty():
        question = f"End cluster {inventory.cluster} on {', '.join(nodes) or 'all nodes'}?"
        if not click.confirm(question, err=True):
            click.echo("nothing was ended")
            return 0
    with Progress(app.screen()) as progress:
        cleared = run(
            tear_down(inventory, progress, dry=dry_run, force=force, purge_cache=purge_cache, only=nodes)
        )
    report = ActionReport(
        ok=not cleared.left,
        changed=cleared.changed and not dry_run,
        endpoint=None,
        steps=progress.steps,
        left=tuple(_left(cleared)),
        dry_run=dry_run,
        nodes=nodes,
        spared=cleared.spared,
    )
    app.show(report, show_action)
    return Degraded.exit_code if cleared.left else 0


def _left(cleared: Cleared) -> Iterator[LeftReport]:
    for node, reason in cleared.left.items():
        cause = cleared.causes.get(node)
        hint = cause.hint if cause else None
        yield LeftReport(node, reason, hint, seen=not isinstance(cause, NodeUnreachable))
