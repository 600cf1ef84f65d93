"""What the files are, told at a glance: for completion in the shell, where nothing is checked and nothing fails.

Loaded whenever Tab is pressed, so the models of the files are not needed here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

MAX_BYTES = 1024 * 1024
"""Larger files are none of ours (files.py)."""


def node_names(inventory: Path) -> tuple[str, ...]:
    """Return the names of an inventory's nodes as they stand there, none if it can't be read."""
    import yaml  # noqa: PLC0415

    try:
        document = yaml.safe_load(_head_of(inventory))
        return tuple(node["name"] for node in document["nodes"] if isinstance(node["name"], str))
    except (yaml.YAMLError, LookupError, TypeError, ValueError, RecursionError):
        return ()


def files_with(key: str, begun: str, folder: str) -> Iterator[str]:
    """Yield the YAML files with this key whose paths begin as given, in the order of their names.

    They are looked for in the directory that is typed, or else here and in `folder`, where they are kept.
    """
    typed = os.path.dirname(begun)
    is_wanted = re.compile(rb"^" + re.escape(key.encode()) + rb"\s*:", re.MULTILINE)
    for place in [typed] if typed else ["", folder]:
        for name in _names_in(Path(place or ".").expanduser()):
            path = os.path.join(place, name)
            fits = path.startswith(begun) and name.endswith((".yaml", ".yml"))
            if fits and is_wanted.search(_head_of(Path(path).expanduser())):
                yield path


def _names_in(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except (OSError, ValueError):
        return []


def _head_of(file: Path) -> bytes:
    try:
        if not file.is_file():
            return b""
        with file.open("rb") as opened:
            return opened.read(MAX_BYTES)
    except (OSError, ValueError):
        return b""
