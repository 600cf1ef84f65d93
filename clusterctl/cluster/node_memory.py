"""The memory of a node and its cards, and what the programs of a cluster hold of it; no llama.cpp is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from clusterctl.cluster.observation import ask
from clusterctl.llama.kernel_memory import parse_amd_cards, parse_device_memory
from clusterctl.llama.vendor_tools import (
    CardMemory,
    ComputeApp,
    parse_compute_apps,
    parse_host_memory,
    parse_nvidia_memory,
)
from clusterctl.model import HostMemory
from clusterctl.remote import commands
from clusterctl.remote.answer import Section, whole_number
from clusterctl.remote.transport import Transport


@dataclass(frozen=True, slots=True)
class NodeMemory:
    """`cards` are those whose driver tells; `apps` are all programs on NVIDIA cards, whoever's they are.

    `held_mib` is what each process on record holds on other makers' cards, by its number.
    """

    host: HostMemory
    cards: tuple[CardMemory, ...] = ()
    apps: tuple[ComputeApp, ...] = ()
    held_mib: Mapping[int, float] = field(default_factory=dict)

    @property
    def apps_mib(self) -> Mapping[int, int]:
        """What each program holds of all NVIDIA cards together, by process number, where it is told."""
        found: dict[int, int] = {}
        for app in self.apps:
            if app.used_mib is not None:
                found[app.pid] = found.get(app.pid, 0) + app.used_mib
        return found

    def held_by(self, pid: int) -> float | None:
        """The MiB of cards that a process holds; `None` if nothing tells of it."""
        parts = [app.used_mib for app in self.apps if app.pid == pid]
        figures = [part for part in (*parts, self.held_mib.get(pid)) if part is not None]
        return sum(figures) if figures else None


async def read_memory(transport: Transport, cluster: str) -> NodeMemory:
    """Look at the memory of a node.

    Raises:
        NodeUnreachable: if the node is gone.
    """
    return parse_memory(await ask(transport, commands.memory(cluster)))


def parse_memory(sections: Mapping[str, Section]) -> NodeMemory:
    """Read the sections of `memory`."""
    texts = {name: section.text for name, section in sections.items()}
    prefix = "device_memory:"
    held = {
        pid: held_mib
        for name, text in texts.items()
        if name.startswith(prefix)
        and (pid := whole_number(name.removeprefix(prefix))) is not None
        and (held_mib := parse_device_memory(text)) is not None
    }
    return NodeMemory(
        host=parse_host_memory(texts.get("memory", "")),
        cards=(
            *(parse_nvidia_memory(texts.get("nvidia_cards", "")) or ()),
            *parse_amd_cards(texts.get("amd_cards", "")),
        ),
        apps=parse_compute_apps(texts.get("nvidia_programs", "")),
        held_mib=held,
    )
