"""Connections to a cluster's nodes for the length of one command."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from clusterctl.cluster.membership import targets_of
from clusterctl.config.inventory import Inventory
from clusterctl.errors import ClusterctlError
from clusterctl.remote.dry import DryTransport
from clusterctl.remote.guarded import Guard, GuardedTransport
from clusterctl.remote.target import Greet, Target, open_all
from clusterctl.remote.transport import Transport


@dataclass(slots=True)
class Session:
    """`nodes` are those that answered; `unreachable` holds the others' errors. More nodes may join."""

    nodes: dict[str, Transport]
    unreachable: dict[str, ClusterctlError]
    dry: bool
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    _guard: Guard | None = None

    async def join(self, targets: Mapping[str, Target], greet: Greet = lambda *_: None) -> None:
        """Connect to further nodes, or once more to lost ones, all at once; `greet` is told of each in time."""
        opened = await self._stack.enter_async_context(open_all(targets, greet))
        for name, transport in opened.done.items():
            node: Transport = DryTransport(transport) if self.dry else transport
            self.nodes[name] = GuardedTransport(node, self._guard) if self._guard else node
            self.unreachable.pop(name, None)
        self.unreachable.update(opened.failed)

    def guard(self, guard: Guard) -> None:
        """From now on, `guard` is asked before every change of any node."""
        self._guard = guard
        self.nodes = {name: GuardedTransport(node, guard) for name, node in self.nodes.items()}


@asynccontextmanager
async def session(
    inventory: Inventory, *, dry: bool = False, greet: Greet = lambda *_: None
) -> AsyncIterator[Session]:
    """Connect to every node of the inventory; in a dry run, no change is made.

    `greet` is told of each node as soon as it is connected, with a way to it that is not held back in a dry run.
    """
    async with AsyncExitStack() as stack:
        opened = Session({}, {}, dry, _stack=stack)
        await opened.join(targets_of(inventory), greet)
        yield opened
