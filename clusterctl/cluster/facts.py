"""All that is known of a node before anything is decided: one round trip, then pure parsing."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Interface

from clusterctl.cluster.cache import CacheDisk, parse_cache_disk
from clusterctl.cluster.interfaces import Interface, parse_interfaces
from clusterctl.cluster.known_options import keep_options, known_fingerprints, known_options
from clusterctl.cluster.observation import Observation, ask, parse_observation
from clusterctl.config.inventory import Inventory, Node
from clusterctl.llama.build import parse_build
from clusterctl.llama.devices import parse_devices
from clusterctl.llama.flags import Flags, parse_help, parse_worker_usage
from clusterctl.llama.library_commit import commit_candidates
from clusterctl.llama.vendor_tools import parse_host_memory
from clusterctl.model import Address, Build, Device, HostMemory, Program, Role
from clusterctl.remote import commands
from clusterctl.remote.answer import Section, whole_number
from clusterctl.remote.transport import Transport

_LINUX_ADDRESS = re.compile(r"^\d+: (\S+) +inet ([\d.]+)(?: peer [\d.]+)?/(\d+)", re.MULTILINE)
_IFCONFIG_INTERFACE = re.compile(r"^(\S+?):? ", re.MULTILINE)
_IFCONFIG_ADDRESS = re.compile(r"inet (?:addr:)?([\d.]+).*?(?:netmask |Mask:)(0x[0-9a-f]{8}|[\d.]+)")
_MISSING_LIBRARY = re.compile(r"^\s*(\S+) => not found", re.MULTILINE)
HEAD_PROGRAMS = ("llama-server", "llama")
WORKER_PROGRAMS = ("ggml-rpc-server", "rpc-server")


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """The facts of one node. `None` means unknown, and no check passes on it.

    `devices` are those the node's own program lists: the worker program's on a worker, `llama-server`'s on
    the head. `files` gives the size in bytes of each file asked for, `None` for a missing one.
    """

    node: str
    role: Role
    observation: Observation
    addresses: tuple[Address, ...]
    interfaces: Mapping[str, Interface]
    memory: HostMemory
    programs: tuple[Program, ...]
    version_text: str
    build: Build | None
    flags: Flags | None
    worker_flags: Flags | None
    devices: tuple[Device, ...] | None
    devices_text: str
    library_commits: frozenset[str]
    missing_libraries: tuple[str, ...]
    files: Mapping[str, int | None]
    cache: CacheDisk = field(default_factory=CacheDisk)

    @property
    def head_program(self) -> tuple[str, ...] | None:
        """How the head is called: `llama-server`, or `llama serve` where only the unified program is there."""
        program = self.server_program
        if program is None:
            return None
        return (program.path, "serve") if _name(program) == "llama" else (program.path,)

    @property
    def server_program(self) -> Program | None:
        """The program that serves models, and alone tells a version."""
        return self.first_program(HEAD_PROGRAMS)

    @property
    def worker_program(self) -> Program | None:
        """The worker program; the new name wins, for the old one beside it is stale."""
        return self.first_program(WORKER_PROGRAMS)

    @property
    def worker_programs(self) -> tuple[Program, ...]:
        """Every worker program found."""
        return tuple(program for program in self.programs if _name(program) in WORKER_PROGRAMS)

    def first_program(self, names: Sequence[str]) -> Program | None:
        """The first of these programs that was found."""
        found = {_name(program): program for program in reversed(self.programs)}
        return next((found[name] for name in names if name in found), None)


async def probe(
    transport: Transport, inventory: Inventory, node: Node, files: Sequence[str], ports: Sequence[int]
) -> NodeFacts:
    """Gather the facts of `node` in one round trip.

    Raises:
        NodeUnreachable: if the node is gone.
        ClusterctlError: if its answer can't be understood.
    """
    command = commands.probe(
        inventory.cluster,
        node.role,
        bin_dir=node.llama.bin_dir,
        ports=ports,
        files=files,
        env=node.env,
        known=known_fingerprints(),
    )
    sections = await ask(transport, command)
    facts = parse_facts(node.name, node.role, files, sections)
    return replace(
        facts,
        flags=_options(facts.server_program, sections.get("help"), parse_help),
        worker_flags=_options(facts.worker_program, sections.get("worker_help"), parse_worker_usage),
    )


def _options(program: Program | None, told: Section | None, parse: Callable[[str], Flags | None]) -> Flags | None:
    """What a program told of its options now, which is kept; or what is kept, if it was not asked again."""
    if program is None:
        return None
    if told is None:
        return parse(known_options(program.fingerprint) or "")
    flags = parse(told.text) if told.status == 0 else None
    if flags is not None:
        keep_options(program.fingerprint, told.text)
    return flags


def parse_facts(node: str, role: Role, files: Sequence[str], sections: Mapping[str, Section]) -> NodeFacts:
    """Read the sections of a probe as those of a node with this role."""
    own = "" if role is Role.HEAD else "worker_"
    names = ("version", "help", "worker_help", f"{own}devices", f"{own}libraries", f"{own}commits")
    version, help_, usage, listing, libraries, commits = (
        sections.get(name, Section(0, "")).text for name in names
    )
    return NodeFacts(
        node=node,
        role=role,
        observation=parse_observation(node, sections),
        addresses=parse_addresses(sections["addresses"].text),
        interfaces=parse_interfaces(sections["interfaces"].text),
        memory=parse_host_memory(sections["memory"].text),
        programs=tuple(_programs(sections)),
        version_text=version,
        build=parse_build(version),
        flags=parse_help(help_),
        worker_flags=parse_worker_usage(usage),
        devices=parse_devices(listing),
        devices_text=listing,
        library_commits=commit_candidates(commits),
        missing_libraries=tuple(_MISSING_LIBRARY.findall(libraries)),
        files=dict(zip(files, _sizes(sections["files"]), strict=False)),
        cache=parse_cache_disk(sections.get("cache", Section(0, "")).text),
    )


def parse_addresses(text: str) -> tuple[Address, ...]:
    """Return the IPv4 addresses in the output of `ip -4 -o addr show` or `ifconfig`."""
    rows = _LINUX_ADDRESS.findall(text) or _ifconfig_rows(text)
    return tuple(address for row in rows if (address := _address(*row)))


def _ifconfig_rows(text: str) -> list[tuple[str, str, str]]:
    found, interface = [], ""
    for line in text.splitlines():
        if not line[:1].isspace() and (match := _IFCONFIG_INTERFACE.match(line)):
            interface = match[1]
        if match := _IFCONFIG_ADDRESS.search(line):
            found.append((interface, match[1], match[2]))
    return found


def _address(interface: str, address: str, mask: str) -> Address | None:
    """Read a mask of any form: `24`, `255.255.255.0` or macOS's `0xffffff00`; `None` if it is no address."""
    length = int(mask, 16).bit_count() if mask.startswith("0x") else mask
    try:
        found = IPv4Interface(f"{address}/{length}")
    except ValueError:
        return None
    return Address(interface, str(found.ip), found.network.prefixlen)


def _programs(sections: Mapping[str, Section]) -> list[Program]:
    return [
        Program(name.removeprefix("program:"), *section.text.split("\n", 1))
        for name, section in sections.items()
        if name.startswith("program:")
    ]


def _name(program: Program) -> str:
    return program.path.rpartition("/")[2]


def _sizes(section: Section) -> list[int | None]:
    return [whole_number(line.partition(" ")[0]) for line in section.lines]
