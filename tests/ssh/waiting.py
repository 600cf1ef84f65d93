"""Waiting for what another process does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


async def until(holds: Callable[[], bool]) -> None:
    """Return as soon as a condition holds; fail after ten seconds."""
    async with asyncio.timeout(10):
        while not holds():  # noqa: ASYNC110 -- another process can't set an Event of ours
            await asyncio.sleep(0.01)
