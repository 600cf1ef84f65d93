"""A machine to install on: the nodes of the inventory that it is, and what lies there already."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from clusterctl.cluster.installed import ROOT
from clusterctl.cluster.observation import System, ask, parse_system
from clusterctl.config.inventory import Inventory, Node
from clusterctl.errors import InstallFailed
from clusterctl.install.table import builds
from clusterctl.remote import commands
from clusterctl.remote.transport import Transport


@dataclass(frozen=True, slots=True)
class Site:
    """One user's home on one machine; several nodes may share it, and then they share the build."""

    name: str
    nodes: tuple[Node, ...]
    transport: Transport


@dataclass(frozen=True, slots=True)
class Look:
    """What lies at a site: `builds` are directories below `ROOT`, `current` and `previous` two of them.

    `gpu_targets` are the names of AMD's GPUs (`gfx1151`) and `hip_compiler` the directory of its compiler.
    """

    system: System
    current: str | None
    previous: str | None
    builds: frozenset[str]
    tools: frozenset[str]
    gpu_targets: tuple[str, ...]
    hip_compiler: str | None

    @property
    def platform(self) -> str:
        """Operating system and processor, as builds.yaml names them."""
        return f"{self.system.os} {self.system.arch}"


def sites_of(inventory: Inventory, transports: Mapping[str, Transport]) -> dict[str, Site]:
    """Return the sites of an inventory by the name of their first node."""
    groups: dict[tuple[str | None, ...], list[Node]] = {}
    for node in inventory.nodes:
        groups.setdefault((*node.machine, node.ssh.user), []).append(node)
    return {
        nodes[0].name: Site(nodes[0].name, tuple(nodes), transports[nodes[0].name]) for nodes in groups.values()
    }


async def look_at(site: Site) -> Look:
    """Ask a site in one round trip.

    Raises:
        NodeUnreachable: if the node is gone.
        ClusterctlError: if its answer can't be understood.
    """
    sections = await ask(site.transport, commands.install_look(ROOT, builds().tools))
    return Look(
        system=parse_system(site.name, sections["system"].lines),
        current=sections["current"].text or None,
        previous=sections["previous"].text or None,
        builds=frozenset(sections["builds"].lines),
        tools=frozenset(sections["tools"].lines),
        gpu_targets=sections["gpu_targets"].lines,
        hip_compiler=sections["hip_compiler"].text or None,
    )


def backends_of(site: Site, look: Look) -> tuple[str, ...]:
    """Return the backends that a site's nodes are to compute with.

    Raises:
        InstallFailed: if the inventory does not name a node's backend, and it can't be told otherwise.
    """
    return tuple(sorted({_backend(node, look) for node in site.nodes}))


def _backend(node: Node, look: Look) -> str:
    if node.backend:
        return node.backend
    if node.serve_only:
        return "cpu"
    raise InstallFailed(
        f"the inventory does not say which backend the node computes with ({look.platform})",
        node=node.name,
        hint="set the node's `backend`: cuda, rocm, vulkan, metal or cpu",
    )
