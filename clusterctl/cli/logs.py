"""`clusterctl logs`."""

from __future__ import annotations

import contextlib
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

import click

from clusterctl.cli import output
from clusterctl.cli.app import App, demand_use, pass_app, to_json
from clusterctl.cli.completing import NODE
from clusterctl.cli.main import GlobalCommand
from clusterctl.cli.running import run
from clusterctl.cluster.bundle import write_bundle
from clusterctl.cluster.logs import Logs, Wanted, follow_logs, read_logs
from clusterctl.cluster.since import parse_since
from clusterctl.config.inventory import Inventory
from clusterctl.errors import ClusterctlError, UsageError
from clusterctl.small_reports import BundleReport, CauseReport, LineReport, LogsReport
from clusterctl.ui.failure import show_error
from clusterctl.ui.logs import LogPrinter, show_cause, show_waiting

DEFAULT_LINES = 100


def _since(ctx: click.Context, param: click.Parameter, value: str | None) -> datetime | None:
    try:
        return None if value is None else parse_since(value, datetime.now().astimezone())
    except (ValueError, OverflowError) as error:
        raise click.BadParameter("must be like 10m, 1h30m or 2026-11-30T08:00") from error


@click.command(cls=GlobalCommand)
@click.argument("nodes", nargs=-1, metavar="[NODE]...", type=NODE)
@click.option("-f", "--follow", is_flag=True, help="Go on with what is added, until Ctrl-C.")
@click.option(
    "-n",
    "--lines",
    type=click.IntRange(min=0),
    help=f"Lines of each node to show.  [default: {DEFAULT_LINES}, or all with --since]",
)
@click.option(
    "--since",
    callback=_since,
    metavar="TIME",
    help="Only what was logged from then on: 10m, 1h30m, or a time such as 2026-11-30T08:00. Workers stamp no "
    "times on their lines, so all of theirs are shown.",
)
@click.option(
    "--bundle",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Instead, write versions, plan, facts, state and logs to FILE (.tar.gz), to send to somebody who helps.",
)
@click.option("--mask", is_flag=True, help="With --bundle: replace addresses, and names of machines and users.")
@pass_app
def logs(
    app: App,
    nodes: tuple[str, ...],
    follow: bool,
    lines: int | None,
    since: datetime | None,
    bundle: Path | None,
    mask: bool,
) -> int:
    """Show the logs of the head and the workers, prefixed by node.

    Ends with the likely cause on stderr if the logs tell of a failure. Nodes keep the last 16 to 32 MiB of each
    log. Exit code 3: a node could not be reached; the others' lines are shown.
    """
    if bundle is None:
        demand_use({"mask": "--mask"}, when="without --bundle")
    else:
        shown = {"nodes": "NODE", "follow": "--follow", "lines": "--lines", "since": "--since"}
        demand_use(shown, when="with --bundle")
        return _bundle(app, bundle, mask=mask)
    if follow and app.as_json:
        raise UsageError("--json prints one document, and --follow never ends", hint="leave one of them out")
    wanted = Wanted(nodes, DEFAULT_LINES if lines is None and since is None else lines, since)
    inventory = app.load_inventory()
    if follow:
        with contextlib.suppress(KeyboardInterrupt):
            run(_follow(app, inventory, wanted))
        return 0
    found = run(read_logs(inventory, wanted))
    with output.read_or_not():
        _show(app, inventory, found)
    for error in found.failed.values():
        show_error(app.screen(), error)
    return max((error.exit_code for error in found.failed.values()), default=0)


def _bundle(app: App, file: Path, *, mask: bool) -> int:
    inventory = app.load_inventory()
    names = run(write_bundle(inventory, app.load_recipe_if_named(inventory), file, mask=mask))
    if app.as_json:
        click.echo(to_json(BundleReport(ok=True, file=str(file), members=tuple(names))))
    else:
        click.echo(f"{file}: {', '.join(names)}")
    return 0


async def _follow(app: App, inventory: Inventory, wanted: Wanted) -> None:
    def lost(error: ClusterctlError) -> None:
        show_error(app.screen(), error)

    def waiting() -> None:
        show_waiting(app.screen(), inventory.cluster)

    printer = _printer(app, inventory)
    async for line in follow_logs(inventory, wanted, lost, waiting):
        printer(line.node, line.text)


def _show(app: App, inventory: Inventory, found: Logs) -> None:
    node, cause = found.cause or (None, None)
    if app.as_json:
        click.echo(to_json(_report(found)))
        return
    printer = _printer(app, inventory)
    for line in found.lines:
        printer(line.node, line.text)
    if node and cause:
        show_cause(app.screen(), node, cause.cause, cause.next_step, cause.line)


def _report(found: Logs) -> LogsReport:
    node, cause = found.cause or ("", None)
    return LogsReport(
        lines=tuple(LineReport(line.node, line.text) for line in found.lines),
        cause=None if cause is None else CauseReport(node, **asdict(cause)),
        unreachable={name: error.message for name, error in found.failed.items()},
    )


def _printer(app: App, inventory: Inventory) -> LogPrinter:
    return LogPrinter(app.screen(), [node.name for node in inventory.nodes])
