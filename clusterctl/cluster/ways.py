"""What the head sees of the workers before anything is started: one round over the private network.

A worker that runs and is idle is greeted; one that is busy is left alone; where none runs, the link is measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from clusterctl.cluster.endpoint import rpc_address
from clusterctl.cluster.facts import NodeFacts
from clusterctl.cluster.link import UNMEASURED, Link, link_problems, measure_links
from clusterctl.cluster.route import End, end_problems, ends_of
from clusterctl.cluster.rpc_probe import Hello, say_hello
from clusterctl.cluster.session import Session
from clusterctl.config.inventory import Inventory
from clusterctl.llama.wire import RpcProtocol
from clusterctl.model import Problem, Severity
from clusterctl.remote.fanout import on_all

Endpoint = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Ways:
    """By node: its endpoint, what a running worker answered or why it was silent, its link and the link's ends."""

    endpoints: Mapping[str, Endpoint] = field(default_factory=dict)
    protocols: Mapping[str, RpcProtocol] = field(default_factory=dict)
    silent: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, Link] = field(default_factory=dict)
    ends: Mapping[str, tuple[End, ...]] = field(default_factory=dict)

    def problems(self, node: str) -> Iterator[Problem]:
        """What is wrong with the way from the head to one node."""
        if node in self.silent:
            yield Problem("worker-silent", Severity.ERROR, self.silent[node], "`clusterctl down`, then `up`")
        if node in self.links:
            address, port = self.endpoints[node]
            yield from link_problems(self.links[node], f"{address}:{port}")
        yield from end_problems(self.ends.get(node, ()), self.links.get(node, UNMEASURED))


async def look_from_head(
    opened: Session, inventory: Inventory, facts: Mapping[str, NodeFacts], *, links: bool
) -> Ways:
    """Greet idle workers and, with `links`, measure the way to those that do not run.

    A sample is served on a worker's own port: not while another command may be about to start the worker there.
    """
    head = opened.nodes.get(inventory.head.name)
    if head is None or inventory.head.name not in facts:
        return Ways()
    endpoints = {
        node.name: (address, node.rpc.port)
        for node in inventory.workers
        if node.name in facts and isinstance(address := rpc_address(inventory, node, facts[node.name]), str)
    }

    async def greet(node: str, endpoint: Endpoint) -> Hello:
        return await say_hello(head, node, *endpoint)

    idle = {node: at for node, at in endpoints.items() if _is_idle(facts[node], node, at)}
    greeted = await on_all(idle, greet)
    free = {node: at for node, at in endpoints.items() if links and not facts[node].observation.listening(at[1])}
    if facts[inventory.head.name].observation.lock is None:
        measured = await measure_links(head, opened.nodes, free)
    else:
        measured = dict.fromkeys(free, Link(None, fault="another command is at work on this cluster"))
    return Ways(
        endpoints=endpoints,
        protocols={node: hello.protocol for node, hello in greeted.done.items()},
        silent={node: error.message for node, error in greeted.failed.items()},
        links=measured,
        ends={node: ends_of(facts[inventory.head.name], facts[node], at[0]) for node, at in endpoints.items()},
    )


def _is_idle(facts: NodeFacts, node: str, endpoint: Endpoint) -> bool:
    """Whether our own worker runs there and nobody is attached to it: only then may it be greeted."""
    seen = facts.observation
    process = seen.process(node)
    if process is None or not process.runs:
        return False
    return bool(seen.listening(endpoint[1])) and not seen.attached(endpoint[1])
