"""Sizes in the words of messages."""

from __future__ import annotations

GIB = 1024**3


def gib(size_bytes: float) -> str:
    """Return a size as `12.5 GiB`."""
    return f"{size_bytes / GIB:.1f} GiB"
