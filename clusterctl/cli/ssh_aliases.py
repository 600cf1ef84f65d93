"""The hosts that `~/.ssh/config` names, for completion in the shell."""

from __future__ import annotations

import glob
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

MAX_DEPTH = 16
"""How deep `Include` may nest (ssh_config(5))."""

_LINE = re.compile(r"\s*(?P<keyword>\w+)(?:\s*=\s*|\s+)(?P<values>.*)")


def ssh_aliases(home: Path) -> tuple[str, ...]:
    """Return the aliases of a user's SSH configuration and what it includes, each once, in their order.

    What can't be read is passed over: whoever presses Tab wants names, not errors.
    """
    folder = home / ".ssh"
    return tuple(dict.fromkeys(_aliases_of(folder / "config", folder, home, MAX_DEPTH)))


def parse_ssh_config(text: str) -> Iterator[tuple[str, str]]:
    """Yield `("host", alias)` and `("include", pattern)` as they stand; patterns and negations are no aliases."""
    for line in text.splitlines():
        found = _LINE.fullmatch(line)
        keyword = found["keyword"].lower() if found else ""
        if found is None or keyword not in ("host", "include"):
            continue
        for value in _words(found["values"]):
            if keyword == "include" or not set(value) & set("*?!"):
                yield keyword, value


def _aliases_of(file: Path, folder: Path, home: Path, depth: int) -> Iterator[str]:
    try:
        text = file.read_text(errors="replace")
    except (OSError, ValueError):
        return
    for keyword, value in parse_ssh_config(text):
        if keyword == "host":
            yield value
        elif depth:
            pattern = home / value[2:] if value.startswith("~/") else folder / value
            for included in sorted(glob.glob(str(pattern))):
                yield from _aliases_of(Path(included), folder, home, depth - 1)


def _words(values: str) -> list[str]:
    try:
        return shlex.split(values, comments=True)
    except ValueError:
        return []
