"""A release of llama.cpp over HTTP: the list of its files, and the files, each checked by its published hash."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import httpx

from clusterctl.cluster.steps import Tell
from clusterctl.errors import InstallFailed
from clusterctl.install.assets import Asset, parse_release
from clusterctl.model import MIB, Outcome, Step

TIMEOUT_S = 30.0
CHUNK_BYTES = MIB
_HINT = "look at the network of this machine, and whether the release exists"


async def list_assets(releases_url: str, tag: str) -> tuple[Asset, ...]:
    """Return the files of a release, as the GitHub API at `releases_url` lists them.

    Raises:
        InstallFailed: if there is no such release, or no answer.
    """
    url = f"{releases_url.rstrip('/')}/tags/{tag}"
    try:
        async with _client() as client:
            answer = (await client.get(url)).raise_for_status()
            document = answer.json()
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        raise InstallFailed(f"can't list the files of release {tag}: {_reason(error)}", hint=_HINT) from error
    return parse_release(document)


async def download(asset: Asset, folder: Path, title: str, tell: Tell) -> Path:
    """Fetch a file into `folder` and return its path; nothing is kept of one whose hash is wrong.

    Raises:
        InstallFailed: if it can't be fetched, or is not what the release says it is.
    """
    path, digest = folder / asset.name, hashlib.sha256()
    try:
        async with _client() as client, client.stream("GET", asset.url) as answer:
            answer.raise_for_status()
            with await asyncio.to_thread(path.open, "wb") as file:
                async for chunk in answer.aiter_bytes(CHUNK_BYTES):
                    digest.update(chunk)
                    await asyncio.to_thread(file.write, chunk)
                    tell(Step(title, Outcome.WAITING, detail=f"{file.tell() / MIB:.0f} MiB"))
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise InstallFailed(f"can't fetch {asset.url}: {_reason(error)}", hint=_HINT) from error
    except OSError as error:
        raise InstallFailed(
            f"can't write {path}: {error.strerror}", hint="is the disk full? TMPDIR moves it"
        ) from error
    if digest.hexdigest() != asset.sha256:
        path.unlink()
        raise InstallFailed(
            f"{asset.name} is not what the release published: sha256 {digest.hexdigest()}, not {asset.sha256}",
            hint="fetch it again; if that does not help, don't use it",
        )
    return path


def _client() -> httpx.AsyncClient:
    return httpx.AsyncClient(follow_redirects=True, timeout=TIMEOUT_S)


def _reason(error: Exception) -> str:
    if isinstance(error, httpx.HTTPStatusError):
        return f"HTTP {error.response.status_code} from {error.request.url}"
    return str(error) or type(error).__name__
