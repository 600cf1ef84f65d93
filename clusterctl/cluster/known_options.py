"""What `--help` of a program printed, kept on this machine by the program's fingerprint.

Starting a program to ask for its options costs a node more than all else that is asked of it.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping
from itertools import islice
from pathlib import Path

_FINGERPRINT = re.compile(r"[0-9]+-[0-9]+")
MOST_KEPT = 64


def known_options_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """Where the texts are kept; removing it is safe."""
    base = environment.get("XDG_CACHE_HOME") or str(Path("~/.cache").expanduser())
    return Path(base) / "clusterctl" / "options"


def known_fingerprints() -> tuple[str, ...]:
    """The programs whose options are known, latest first."""
    with contextlib.suppress(OSError):
        files = sorted(known_options_directory().iterdir(), key=lambda file: file.stat().st_mtime, reverse=True)
        known = (file.name for file in files if known_options(file.name))
        return tuple(islice(known, MOST_KEPT))
    return ()


def known_options(fingerprint: str) -> str | None:
    """What the program printed, `None` if it is not known, or is damaged as by a loss of power."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        if _FINGERPRINT.fullmatch(fingerprint):
            text = (known_options_directory() / fingerprint).read_text("utf-8")
            return text if text and "\0" not in text else None
    return None


def keep_options(fingerprint: str, text: str) -> None:
    """Keep what a program printed; a machine that can't is asked again next time."""
    if not _FINGERPRINT.fullmatch(fingerprint):
        return
    with contextlib.suppress(OSError):
        directory = known_options_directory()
        directory.mkdir(parents=True, exist_ok=True)
        fresh = directory / f".{fingerprint}.{os.getpid()}"
        fresh.write_text(text, "utf-8")
        fresh.replace(directory / fingerprint)
