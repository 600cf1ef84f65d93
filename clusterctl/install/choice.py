"""What each site is to get: which files, compiled how, and the directory that it goes to."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clusterctl.errors import ClusterctlError, InstallFailed, UsageError, raise_all
from clusterctl.install.assets import Asset, choose_assets
from clusterctl.install.needs import cmake_flags
from clusterctl.install.order import LocalFile, Order, Source
from clusterctl.install.site import Look, Site


@dataclass(frozen=True, slots=True)
class Choice:
    """`files` are unpacked into one directory; with `flags` they are source to compile."""

    files: tuple[LocalFile | Asset, ...]
    flags: tuple[str, ...]
    directory: str


def choose(
    order: Order, sites: Mapping[str, Site], looks: Mapping[str, Look], assets: Sequence[Asset]
) -> dict[str, Choice]:
    """Return every site's choice; nothing is fetched or read for it.

    Raises:
        InstallFailed: for all sites at once that can't have the build.
    """
    choices: dict[str, Choice] = {}
    errors: list[ClusterctlError] = []
    for name, site in sites.items():
        try:
            choices[name] = _choice(order, site, looks[name], assets)
        except (InstallFailed, UsageError) as error:
            errors.append(error)
    raise_all(errors)
    return choices


def _choice(order: Order, site: Site, look: Look, assets: Sequence[Asset]) -> Choice:
    files: tuple[LocalFile | Asset, ...]
    if order.source is Source.RELEASE:
        files = choose_assets(order.name, assets, site, look)
    else:
        files = (_one_file(order, site),)
    flags = cmake_flags(site, look, order.build) if order.source is Source.SOURCE else ()
    return Choice(files, flags, directory_name(order.name, files, flags))


def _one_file(order: Order, site: Site) -> LocalFile:
    files = {order.files[node.name] for node in site.nodes}
    if len(files) > 1:
        names = " and ".join(node.name for node in site.nodes)
        raise UsageError(f"{names} share a machine and so a build", hint="give them the same FILE")
    return files.pop()


def directory_name(build: str, files: Sequence[LocalFile | Asset], flags: Sequence[str]) -> str:
    """Name a directory after all that decides what is in it: so none is ever written to twice."""
    what = "\n".join([*(str(file.sha256) for file in files), *flags])
    return f"{build}-{hashlib.sha256(what.encode()).hexdigest()[:8]}"
