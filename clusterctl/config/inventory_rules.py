"""Rules of an inventory that no single value can break: they look at the nodes beside each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from ipaddress import IPv4Address

from pydantic import ValidationError

from clusterctl.config.document import Document, Entry, Items, Map, Value, fault_at, merge, plain
from clusterctl.config.inventory import Node
from clusterctl.errors import Fault
from clusterctl.llama.arguments import variable_refusal
from clusterctl.model import Role

MAX_WORKERS = 16
"""RPC servers that one head can use (llama.cpp ggml/src/ggml-rpc: GGML_RPC_MAX_SERVERS)."""

OWN_KEYS = frozenset({"name", "host", "role"})
"""Keys that belong to one node and are never taken from `defaults`."""

Nodes = Mapping[int, Node]
"""The nodes that are valid by themselves, by their place in the list."""


def with_defaults(document: Document) -> Document:
    """Return the document with `defaults` merged into each node; every value keeps its own position."""
    match document.get("defaults"), document.root.entries.get("nodes"):
        case Map() as defaults, Entry(value=Items(values=values) as nodes) as entry:
            merged = tuple(
                merge(defaults, node, without=OWN_KEYS) if isinstance(node, Map) else node for node in values
            )
            entries = {**document.root.entries, "nodes": replace(entry, value=replace(nodes, values=merged))}
            return replace(document, root=replace(document.root, entries=entries))
        case _:
            return document


def inventory_faults(document: Document) -> Iterator[Fault]:
    """Yield what is wrong between the nodes of an inventory; what is wrong inside a node is not told here."""
    nodes = _valid_nodes(document)
    roles = [document.text("nodes", at, "role") for at, _ in enumerate(_listed(document))]
    yield from _one_head(document, roles)
    yield from _few_workers(document, roles)
    yield from _unique_names(document)
    yield from _useful_serve_only(document, nodes, roles)
    yield from _workers_with_address(document, nodes)
    yield from _loopback_within_one_machine(document, nodes)
    yield from _unique_endpoints(document, nodes)
    yield from _variables_beside_the_plan(document)


def _listed(document: Document) -> tuple[Value, ...]:
    nodes = document.get("nodes")
    return nodes.values if isinstance(nodes, Items) else ()


def _valid_nodes(document: Document) -> Nodes:
    nodes = {}
    for at, value in enumerate(_listed(document)):
        with suppress(ValidationError):
            nodes[at] = Node.model_validate(plain(value))
    return nodes


def _one_head(document: Document, roles: list[str | None]) -> Iterator[Fault]:
    heads = [at for at, role in enumerate(roles) if role == Role.HEAD]
    if roles and not heads and all(role == Role.WORKER for role in roles):
        yield document.fault(("nodes",), "no node is the head; give one of them `role: head`")
    for at in heads[1:]:
        message = f"only one node can be the head, and nodes[{heads[0]}] is; make this one a worker"
        yield document.fault(("nodes", at, "role"), message)


def _few_workers(document: Document, roles: list[str | None]) -> Iterator[Fault]:
    workers = roles.count(Role.WORKER)
    if workers > MAX_WORKERS:
        message = f"must have at most {MAX_WORKERS} workers, as llama.cpp takes no more (got {workers})"
        yield document.fault(("nodes",), message)


def _unique_names(document: Document) -> Iterator[Fault]:
    first: dict[str, int] = {}
    for at, _ in enumerate(_listed(document)):
        name = document.text("nodes", at, "name")
        if name is not None and first.setdefault(name, at) != at:
            message = f"`{name}` is already the name of nodes[{first[name]}]"
            yield document.fault(("nodes", at, "name"), message)


def _useful_serve_only(document: Document, nodes: Nodes, roles: list[str | None]) -> Iterator[Fault]:
    for at, node in nodes.items():
        if node.serve_only and node.role is Role.WORKER:
            message = "only the head can be `serve_only`; leave a worker out to keep its devices free"
            yield document.fault(("nodes", at, "serve_only"), message)
        elif node.serve_only and len(roles) == 1:
            message = "a head without workers can't be `serve_only`: nothing would hold the layers"
            yield document.fault(("nodes", at, "serve_only"), message)


def _workers_with_address(document: Document, nodes: Nodes) -> Iterator[Fault]:
    network = document.get("network")
    if network and plain(network) is not None:
        return
    for at, node in nodes.items():
        if node.role is Role.WORKER and not (node.rpc.address or node.rpc.interface):
            message = (
                "no address for RPC is known; set `network` for all nodes, "
                "or `rpc.address` or `rpc.interface` for this one"
            )
            yield document.fault(("nodes", at), message)


def _loopback_within_one_machine(document: Document, nodes: Nodes) -> Iterator[Fault]:
    head = next((node for node in nodes.values() if node.role is Role.HEAD), None)
    for at, node in nodes.items():
        address = node.rpc.address
        if head and address and IPv4Address(address).is_loopback and not node.shares_machine_with(head):
            message = (
                f"{address} can be reached only on the head's own machine, and `{node.name}` is not on it; "
                "name a private address"
            )
            yield document.fault(("nodes", at, "rpc", "address"), message)


def _unique_endpoints(document: Document, nodes: Nodes) -> Iterator[Fault]:
    workers = [(at, node) for at, node in nodes.items() if node.role is Role.WORKER]
    for place, (at, node) in enumerate(workers):
        other = next((before for _, before in workers[:place] if _same_endpoint(node, before)), None)
        if other:
            message = f"`{other.name}` listens on port {node.rpc.port} there already; choose another port"
            yield document.fault(("nodes", at, "rpc", "port"), message)


def _variables_beside_the_plan(document: Document) -> Iterator[Fault]:
    for at, _ in enumerate(_listed(document)):
        place = ("nodes", at, "env")
        variables = document.get(*place)
        for name, entry in variables.entries.items() if isinstance(variables, Map) else ():
            if why := variable_refusal(name):
                yield fault_at(document.file, entry.mark, (*place, name), f"`{name}` must not be set: {why}")


def _same_endpoint(one: Node, other: Node) -> bool:
    if one.rpc.port != other.rpc.port:
        return False
    if one.rpc.address and other.rpc.address:
        return one.rpc.address == other.rpc.address
    return one.shares_machine_with(other)
