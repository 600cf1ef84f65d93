"""Which files of a release a node needs. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clusterctl.errors import InstallFailed
from clusterctl.install.site import Look, Site, backends_of
from clusterctl.install.table import builds

_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Asset:
    """A file of a release; `sha256` is `None` where the release does not publish it."""

    name: str
    url: str
    sha256: str | None


def parse_release(document: object) -> tuple[Asset, ...]:
    """Return the files of a release as the GitHub API lists them; what is not of that form is passed over."""
    assets = document.get("assets") if isinstance(document, Mapping) else None
    return tuple(asset for raw in assets if (asset := _asset(raw))) if isinstance(assets, list) else ()


def choose_assets(tag: str, assets: Sequence[Asset], site: Site, look: Look) -> tuple[Asset, ...]:
    """Return the file with a site's programs, and the one with libraries that belong beside them, if any.

    Raises:
        InstallFailed: if the release has nothing for the site, or does not say what a file's hash is.
    """
    backend = _one_backend(site, look)
    platforms = builds().release.get(look.platform, {})
    pattern = _pattern(tag, platforms[backend]) if backend in platforms else None
    found = sorted((a for a in assets if pattern and pattern.fullmatch(a.name)), key=lambda a: _numbers(a.name))
    if not found:
        raise InstallFailed(
            f"release {tag} has no file for {look.platform} with {backend}",
            node=site.name,
            hint="compile there with --from source, or unpack a build of your own with --from archive",
        )
    wanted = {found[0].name, f"{builds().companion}{found[0].name}"}
    chosen = tuple(sorted((asset for asset in assets if asset.name in wanted), key=lambda a: a is not found[0]))
    for asset in chosen:
        if asset.sha256 is None:
            raise InstallFailed(
                f"the release does not publish the sha256 of {asset.name}",
                node=site.name,
                hint=f"download {asset.url} yourself, make sure of it, and install it with --from archive",
            )
    return chosen


def _one_backend(site: Site, look: Look) -> str:
    backends = [backend for backend in backends_of(site, look) if backend != "cpu"] or ["cpu"]
    if len(backends) > 1:
        names = " and ".join(node.name for node in site.nodes)
        raise InstallFailed(
            f"{names} share a machine, and no file of a release has {' and '.join(backends)} in one",
            node=site.name,
            hint="compile there with --from source: then one build has all backends",
        )
    return backends[0]


def _pattern(tag: str, platform: str) -> re.Pattern[str]:
    name = re.escape(f"llama-{tag}-bin-{platform}").replace(r"\*", r"[0-9.]+")
    return re.compile(rf"{name}\.(tar\.gz|zip)")


def _numbers(name: str) -> list[int]:
    return [int(number) for number in re.findall(r"[0-9]+", name)]


def _asset(raw: object) -> Asset | None:
    if not isinstance(raw, Mapping):
        return None
    name, url, digest = (raw.get(key) for key in ("name", "browser_download_url", "digest"))
    if not isinstance(name, str) or not isinstance(url, str):
        return None
    published = _DIGEST.fullmatch(digest) if isinstance(digest, str) else None
    return Asset(name, url, published[1] if published else None)
