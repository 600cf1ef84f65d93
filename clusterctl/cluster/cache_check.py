"""Whether the caches of workers may be trusted after a load: a disk that is full has cut something short."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from clusterctl.cluster.cache import parse_cache_disk
from clusterctl.cluster.steps import Tell
from clusterctl.model import Outcome, Step
from clusterctl.remote import commands
from clusterctl.remote.fanout import on_all
from clusterctl.remote.transport import Transport

# A worker does not say that it could not write; less room than this is none.
FULL_MIB = 16


async def drop_damaged_caches(
    transports: Mapping[str, Transport], cluster: str, names: Collection[str], tell: Tell
) -> None:
    """Remove the cache of every node whose disk is full: the next start would load wrong weights from it.

    The running worker has its weights in memory and is not touched.

    Raises:
        NodeUnreachable: if a node is gone.
    """

    async def check(name: str, node: Transport) -> None:
        output = await node.run(commands.cache_room(cluster))
        disk = parse_cache_disk(output.stdout.decode(errors="replace"))
        if disk.used_mib == 0 or (disk.free_mib is not None and disk.free_mib >= FULL_MIB):
            return
        await node.run(commands.purge(cluster))
        tell(
            Step(
                "drop the worker's cache",
                Outcome.WARNING,
                name,
                detail="its disk is full, so what was cached may be cut short; the next start sends it again",
            )
        )

    (await on_all({name: transports[name] for name in names}, check)).all_done()
