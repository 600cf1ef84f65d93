"""The same work on many nodes at once: every node finishes, every node's error is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from clusterctl.errors import ClusterctlError, raise_all

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Outcomes(Generic[Result]):
    """What came of the work, by node."""

    done: Mapping[str, Result]
    failed: Mapping[str, ClusterctlError]

    def all_done(self) -> Mapping[str, Result]:
        """Return every node's result, or raise the errors of all that failed."""
        raise_all(list(self.failed.values()))
        return self.done


async def on_all(items: Mapping[str, Item], work: Callable[[str, Item], Awaitable[Result]]) -> Outcomes[Result]:
    """Run `work` for every item at once and wait for all of them, whatever becomes of the others.

    The items are those of the beginning, although nodes may be lost or found meanwhile.

    Errors that clusterctl did not foresee are raised as they are, after the others have finished.
    """
    items = dict(items)
    results = await asyncio.gather(*(work(name, item) for name, item in items.items()), return_exceptions=True)
    by_name = dict(zip(items, results, strict=True))
    for result in results:
        if isinstance(result, BaseException) and not isinstance(result, ClusterctlError):
            raise result
    return Outcomes(
        done={n: r for n, r in by_name.items() if not isinstance(r, BaseException)},
        failed={n: r for n, r in by_name.items() if isinstance(r, ClusterctlError)},
    )
