"""What a model's probabilities were on one node: kept on this machine, to compare clusters with.

One small file for each model, build and way of computing. It stays after `down`, as the nodes keep nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from clusterctl.cluster.facts import NodeFacts
from clusterctl.cluster.stated import stated_build
from clusterctl.config.recipe import Recipe
from clusterctl.llama.model_parts import part_names


def reference_key(recipe: Recipe, head: NodeFacts) -> str | None:
    """Return what tells one model, build and way of computing from another; `None` if any of it is unknown.

    The split and the devices are no part of it: they must not make a difference.
    """
    build = stated_build(head)
    sizes = {PurePosixPath(part).name: head.files.get(part) for part in part_names(recipe.model.path)}
    if build is None or build.commit is None or None in sizes.values():
        return None
    document = {
        "files": sizes,
        "commit": build.commit,
        "kv_cache": [recipe.kv_cache.k, recipe.kv_cache.v],
        "flash_attention": recipe.flash_attention,
        "extra_args": recipe.server.extra_args,
    }
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:24]


def read_reference(key: str, environment: Mapping[str, str] = os.environ) -> tuple[float, ...] | None:
    """Return the log-probabilities that are kept under a key; `None` if there are none that can be read."""
    try:
        document = json.loads(_path(key, environment).read_text("utf-8"))
        return tuple(float(number) for number in document["logprobs"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def keep_reference(key: str, logprobs: Sequence[float], environment: Mapping[str, str] = os.environ) -> None:
    """Keep log-probabilities under a key, in place of older ones.

    Without a place to write, nothing is kept: the next cluster is then judged without a reference.
    """
    path = _path(key, environment)
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_text(json.dumps({"logprobs": list(logprobs)}), "utf-8")
        beside.replace(path)


def _path(key: str, environment: Mapping[str, str]) -> Path:
    """A file below `${XDG_STATE_HOME:-~/.local/state}/clusterctl/sense`; a relative XDG path does not count."""
    state = Path(environment.get("XDG_STATE_HOME", ""))
    base = state if state.is_absolute() else Path.home() / ".local" / "state"
    return base / "clusterctl" / "sense" / f"{key}.json"
