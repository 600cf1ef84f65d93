"""Whether the weights that a plan gives to workers have room in the caches on their disks. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from clusterctl.cluster.cache import GIB_MIB, CacheDisk
from clusterctl.cluster.facts import NodeFacts
from clusterctl.config.inventory import Inventory
from clusterctl.errors import PlanDoesNotFit, raise_all
from clusterctl.model import MIB, Advice, Split


def demand_room(inventory: Inventory, facts: Mapping[str, NodeFacts], split: Split) -> None:
    """Return if the caches have room for all weights of their nodes, or may hold them already.

    Raises:
        PlanDoesNotFit: for every node whose disk is too small, or not known.
    """
    raise_all(
        [
            PlanDoesNotFit(
                f"the worker's cache is to hold {wanted_mib / GIB_MIB:.1f} GiB, but its disk has room for "
                f"{_room(disk)}",
                node=node,
                hint="free space there, remove an old cache with `clusterctl down --purge-cache`, or set "
                "rpc.cache to false",
            )
            for node, disk, wanted_mib in _caches(inventory, facts, split)
            if disk.free_mib is None or disk.free_mib + (disk.used_mib or 0) < wanted_mib
        ]
    )


def cache_advice(inventory: Inventory, facts: Mapping[str, NodeFacts], split: Split) -> Iterator[Advice]:
    """Warn of caches that have room only if the weights are in them already."""
    for node, disk, wanted_mib in _caches(inventory, facts, split):
        if disk.free_mib is not None and disk.free_mib < wanted_mib:
            yield Advice(
                "cache-tight",
                f"the cache of {node} has room for its {wanted_mib / GIB_MIB:.1f} GiB only if it holds most of "
                "them already; if it holds another model, run `clusterctl down --purge-cache` first, for a full "
                "disk leaves damaged weights in it",
            )


def _caches(
    inventory: Inventory, facts: Mapping[str, NodeFacts], split: Split
) -> Iterator[tuple[str, CacheDisk, int]]:
    """Every node with a cache, its disk, and the MiB of weights that it may come to hold."""
    for node in inventory.workers:
        own = [share.memory.model_bytes for share in split.shares if share.offer.node == node.name]
        if node.rpc.cache and own:
            yield node.name, facts[node.name].cache, sum(own) // MIB


def _room(disk: CacheDisk) -> str:
    if disk.free_mib is None:
        return "an unknown amount"
    return f"{(disk.free_mib + (disk.used_mib or 0)) / GIB_MIB:.1f} GiB"
