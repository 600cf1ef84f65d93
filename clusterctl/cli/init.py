"""`clusterctl init`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from ipaddress import IPv4Network
from pathlib import Path

import click

from clusterctl.cli.app import App, pass_app
from clusterctl.cli.completing import HOST
from clusterctl.cli.main import GlobalCommand
from clusterctl.cli.running import run
from clusterctl.cli.values import Place, cluster_name, place, private_network
from clusterctl.cluster.head_choice import HeadChoice, choose_head
from clusterctl.cluster.init import foresee_check
from clusterctl.cluster.proposal import Proposal, propose
from clusterctl.cluster.survey import Site, survey
from clusterctl.config.inventory_rules import MAX_WORKERS
from clusterctl.config.loading import parse_inventory
from clusterctl.config.writing import existing, inventory_text, write_inventory
from clusterctl.errors import ClusterctlError, UsageError
from clusterctl.model import Role
from clusterctl.reports import CheckReport, InitReport
from clusterctl.ui.init import show_init
from clusterctl.ui.progress import Progress

DEFAULT_CLUSTER = "homelab"


def _each(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> tuple[Place, ...]:
    return tuple(map(place, texts))


def _cluster(ctx: click.Context, param: click.Parameter, text: str | None) -> str | None:
    return None if text is None else cluster_name(text)


def _network(ctx: click.Context, param: click.Parameter, text: str | None) -> IPv4Network | None:
    return None if text is None else private_network(text)


@click.command(cls=GlobalCommand)
@click.argument("places", metavar="HOST...", nargs=-1, required=True, type=HOST, callback=_each)
@click.option("--network", metavar="CIDR", callback=_network, help="Network of the RPC traffic.")
@click.option(
    "--head", "wanted_head", metavar="HOST", type=HOST, help="The one of the hosts that is to be the head."
)
@click.option(
    "--cluster", metavar="NAME", callback=_cluster, help=f"Name of the cluster. Default: {DEFAULT_CLUSTER}."
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="File to write. Default: NAME.yaml, in inventory/ if there is such a directory.",
)
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
@click.option("--yes", is_flag=True, help="Don't ask; take what seems best.")
@pass_app
def init(
    app: App,
    places: tuple[Place, ...],
    network: IPv4Network | None,
    wanted_head: str | None,
    cluster: str | None,
    output: Path | None,
    force: bool,
    yes: bool,
) -> None:
    """Look at hosts over SSH and write an inventory with what was found.

    HOST is [USER@]HOST[:PORT] or an alias of ~/.ssh/config; `localhost` is this machine, without SSH. Each host is
    looked at once, and not changed. Nothing is written unless all of them answer.
    """
    may_ask = not (yes or app.as_json) and sys.stdin.isatty()
    by_text = _each_once(places)
    if wanted_head is not None and wanted_head not in by_text:
        raise UsageError(f"--head {wanted_head} is none of the hosts", hint=f"it can be {', '.join(by_text)}")
    name = cluster or (_ask_cluster() if may_ask else DEFAULT_CLUSTER)
    path = output or _default_path(name)
    _demand_writable(path, force=force)
    sites = _look(app, by_text, name)
    found = tuple(sites.values())
    proposal = propose(name, found, _choose_head(sites, wanted_head, may_ask=may_ask), network)
    text = inventory_text(proposal.draft)
    foreseen = foresee_check(parse_inventory(text, str(path), {}), found)
    write_inventory(path, text, replace=force)
    app.show(_report(path, proposal, foreseen), show_init)


def _each_once(places: tuple[Place, ...]) -> Mapping[str, Place]:
    by_text = {place.text: place for place in places}
    if len(by_text) < len(places):
        twice = next(place.text for place in places if [each.text for each in places].count(place.text) > 1)
        raise UsageError(f"{twice} is named twice", hint="name each machine once")
    if len(places) > MAX_WORKERS + 1:
        raise UsageError(
            f"{len(places)} hosts are too many: llama.cpp takes {MAX_WORKERS} workers and a head",
            hint="leave some out, or make two clusters",
        )
    return by_text


def _ask_cluster() -> str:
    name: str = click.prompt("Name of the cluster", default=DEFAULT_CLUSTER, value_proc=cluster_name, err=True)
    return name


def _default_path(cluster: str) -> Path:
    folder = Path("inventory")
    return (folder if folder.is_dir() else Path()) / f"{cluster}.yaml"


def _demand_writable(path: Path, *, force: bool) -> None:
    """Refuse a file that could not be written afterwards, so that nobody waits for nothing."""
    if path.exists() and not force:
        raise existing(path)
    if not path.parent.is_dir():
        raise UsageError(f"there is no directory {path.parent}", hint="make it, or name another file with -o")


def _look(app: App, places: Mapping[str, Place], cluster: str) -> Mapping[str, Site]:
    """Return what was found at each place, by the place's text."""
    destinations = {text: place.destination for text, place in places.items()}
    try:
        with Progress(app.screen()) as progress:
            found = run(survey(destinations, cluster, progress))
    except ClusterctlError as error:
        error.add_note("nothing was written; every host must answer, or be left out")
        raise
    return dict(zip(places, found, strict=True))


def _choose_head(sites: Mapping[str, Site], wanted: str | None, *, may_ask: bool) -> HeadChoice:
    if wanted is not None:
        return HeadChoice(sites[wanted].name, "you chose it")
    choice = choose_head(tuple(sites.values()))
    if not (choice.equals and may_ask):
        return choice
    names = click.Choice([choice.name, *choice.equals])
    asked = click.prompt(
        "Which node has the model file and is the head?", type=names, default=choice.name, err=True
    )
    return HeadChoice(asked, "you chose it")


def _report(path: Path, proposal: Proposal, foreseen: CheckReport) -> InitReport:
    return InitReport(
        ok=True,
        path=str(path),
        nodes=foreseen.nodes,
        network=proposal.draft.network,
        head=next(node.name for node in proposal.draft.nodes if node.role is Role.HEAD),
        reasons=proposal.reasons,
        skew=foreseen.skew,
    )
