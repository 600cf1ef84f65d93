"""`install`: look, choose, put, verify, switch, confirm. The lists of phases at the end are the whole of it.

No node is switched before every node has its build, and every build has shown that it works and is the same.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from clusterctl.cluster.installed import ROOT
from clusterctl.cluster.lock import holding
from clusterctl.cluster.phases import Phase, run_phases
from clusterctl.cluster.session import session
from clusterctl.cluster.steps import Tell, telling
from clusterctl.config.inventory import Inventory
from clusterctl.errors import InstallFailed, raise_all
from clusterctl.install.archive import PROGRAMS, SOURCE_TREE, Package, pack
from clusterctl.install.assets import Asset
from clusterctl.install.choice import choose
from clusterctl.install.installation import Installation, Links
from clusterctl.install.order import LocalFile, Order, Source
from clusterctl.install.put import put
from clusterctl.install.release import download, list_assets
from clusterctl.install.site import Site, look_at, sites_of
from clusterctl.install.verify import demand_working, inventory_of, probe_nodes
from clusterctl.model import Outcome
from clusterctl.remote import commands
from clusterctl.remote.fanout import on_all


async def install(inventory: Inventory, order: Order | None, tell: Tell, *, dry: bool = False) -> Installation:
    """Put the build of `order` on every node, or without one go back to the build that each had before.

    If anything fails, or on Ctrl-C, every node still uses what it used before.

    Raises:
        NodeUnreachable: if a node can't be reached.
        BuildSkew: if the nodes would not all be on the same build.
        InstallFailed: for every other reason, all nodes' at once.
        LockHeld: if another command works on the cluster.
    """
    phases = INSTALL if order else ROLLBACK
    with tempfile.TemporaryDirectory(prefix="clusterctl-") as scratch:
        async with session(inventory, dry=dry) as opened:
            raise_all(list(opened.unreachable.values()))
            async with holding(opened.nodes[inventory.head.name], inventory.cluster, "install") as lease:
                opened.guard(lease.demand)
                sites = sites_of(inventory, opened.nodes)
                begun = Installation(inventory, order, opened, tell, Path(scratch), sites)
                done = await run_phases(phases, begun, tell)
                await _prune(done)
                return done


async def _look(context: Installation) -> Installation:
    looks = await on_all(context.sites, lambda _, site: look_at(site))
    return replace(context, looks=looks.all_done())


async def _choose(context: Installation) -> Installation:
    order = context.order
    assert order is not None
    is_release = order.source is Source.RELEASE
    assets = await list_assets(order.releases_url, order.name) if is_release else ()
    choices = choose(order, context.sites, context.looks, assets)
    links = {name: _moved(context.old_links[name], choice.directory) for name, choice in choices.items()}
    return replace(context, choices=choices, links=links)


async def _turn_back(context: Installation) -> Installation:
    hint = f"only what `install` replaced can come back; without {ROOT}/current a node uses what it had before"
    raise_all(
        [
            InstallFailed("there is no build to go back to", node=name, hint=hint)
            for name, links in context.old_links.items()
            if links.previous is None
        ]
    )
    links = {name: Links(old.previous, old.current) for name, old in context.old_links.items()}
    return replace(context, links=links)


def _moved(old: Links, directory: str) -> Links:
    return old if old.current == directory else Links(directory, old.current)


async def _put(context: Installation) -> Installation:
    packages = await _packages(context) if context.real else {}

    async def put_one(name: str, site: Site) -> None:
        choice = context.choices[name]
        with telling(context.tell, f"install {choice.directory}", name) as note:
            if name not in context.missing:
                note.outcome, note.detail = Outcome.UNCHANGED, "is there already"
            elif not context.real:
                note.outcome = Outcome.WOULD
            else:
                package = packages[choice.files]
                await put(site, context.looks[name], package, choice.directory, choice.flags, context.tell)

    (await on_all(context.sites, put_one)).all_done()
    return context


async def _packages(context: Installation) -> dict[tuple[LocalFile | Asset, ...], Package]:
    """What is to be sent, each fetched and packed once however many nodes get it."""
    packages = {}
    for number, choice in enumerate({choice.files: choice for choice in context.missing.values()}.values()):
        paths = [await _on_this_machine(context, file) for file in choice.files]
        with telling(context.tell, f"pack {paths[0].name}"):
            wanted = SOURCE_TREE if choice.flags else PROGRAMS
            packages[choice.files] = await asyncio.to_thread(
                pack, paths, wanted, context.scratch / f"{number}.tar.gz"
            )
    return packages


async def _on_this_machine(context: Installation, file: LocalFile | Asset) -> Path:
    if isinstance(file, LocalFile):
        return file.path
    title = f"fetch {file.name}"
    with telling(context.tell, title):
        return await download(file, context.scratch, title, context.tell)


async def _verify(context: Installation) -> Installation:
    """Ask the new programs themselves, where they lie, before anything uses them."""
    staged = inventory_of(context.inventory, context.sites, context.directories)
    facts = await probe_nodes(context.sites, staged)
    demand_working(staged, facts, context.order.name if context.order else None)
    return context


async def _switch(context: Installation) -> Installation:
    await _point(context, context.changes)
    return context


async def _switch_back(context: Installation) -> None:
    old = context.old_links
    await _point(context, {name: old[name] for name in context.changes})


async def _point(context: Installation, changes: Mapping[str, Links]) -> None:
    async def point(name: str, site: Site) -> None:
        with telling(context.tell, "switch", name) as note:
            links = changes.get(name)
            if links is None:
                note.outcome, note.detail = Outcome.UNCHANGED, context.links[name].current or ""
                return
            note.detail = links.current or "what it had before"
            command = commands.install_switch(ROOT, links.current or "", links.previous or "")
            output = await site.transport.run(command)
            if output.exit_status != 0:
                raise InstallFailed(f"could not switch: {output.stderr.strip()[:300]}", node=name)
            if output.recorded:
                note.outcome = Outcome.WOULD

    (await on_all(context.sites, point)).all_done()


async def _confirm(context: Installation) -> Installation:
    """Look again, as every other command will: the inventory leads to the build that was meant."""
    facts = await probe_nodes(context.sites, context.inventory)
    skew = demand_working(context.inventory, facts, context.order.name if context.order else None)
    for name, own in facts.items():
        if own.head_program is None or f"{ROOT.removeprefix('~')}/current/" not in own.head_program[0]:
            raise InstallFailed(f"the node does not use the build, but {own.head_program}", node=name)
    return replace(context, facts=facts, skew=skew)


async def _prune(context: Installation) -> None:
    """Not a phase, since it can't be undone. What can't be removed takes up space, and does no other harm."""

    async def prune(name: str, site: Site) -> None:
        with telling(context.tell, "remove older builds", name) as note:
            output = await site.transport.run(commands.install_prune(ROOT))
            removed = output.stdout.decode(errors="replace").split()
            note.detail = ", ".join(removed)
            note.outcome = Outcome.DONE if removed else Outcome.UNCHANGED
            if output.recorded:
                note.outcome = Outcome.WOULD

    await on_all(context.sites, prune)


_USE = (
    Phase("verify the builds", _verify, needed=lambda c: c.real),
    Phase("switch all nodes", _switch, _switch_back),
    Phase("confirm", _confirm, needed=lambda c: c.real),
)
INSTALL = (
    Phase("look at the nodes", _look),
    Phase("choose what each node needs", _choose),
    Phase("put the build on every node", _put),
    *_USE,
)
ROLLBACK = (
    Phase("look at the nodes", _look),
    Phase("find the build before", _turn_back),
    *_USE,
)
