"""Machines that have no role yet, each looked at in one round trip."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from ipaddress import AddressValueError, IPv4Address

from clusterctl.cluster.facts import NodeFacts, parse_facts
from clusterctl.cluster.observation import ask
from clusterctl.cluster.steps import Tell, telling
from clusterctl.config.inventory import Rpc
from clusterctl.errors import UsageError, raise_all
from clusterctl.model import Role
from clusterctl.remote import commands
from clusterctl.remote.answer import Section
from clusterctl.remote.fanout import on_all
from clusterctl.remote.target import Destination, open_all
from clusterctl.remote.transport import Transport

MAX_NAME = 63
_MODEL = re.compile("(?P<bytes>[0-9]{1,18}) [0-9]+ (?P<path>.+)")


@dataclass(frozen=True, slots=True)
class Site:
    """A machine as found. `destination` is `None` for this one, and `ssh_address` is where SSH came in.

    `models` are the sizes in bytes of the model files that lie in the usual places.
    """

    name: str
    destination: Destination | None
    as_head: NodeFacts
    as_worker: NodeFacts
    models: Mapping[str, int]
    ssh_address: str | None

    def facts(self, role: Role) -> NodeFacts:
        """What `check` would know of it in this role."""
        return replace(self.as_head if role is Role.HEAD else self.as_worker, node=self.name)


async def survey(places: Mapping[str, Destination | None], cluster: str, tell: Tell) -> tuple[Site, ...]:
    """Look at every place, all at once, and return what was found, each with a name for the inventory.

    Raises:
        NodeUnreachable: if a place can't be reached; `NodesFailed` for several.
        UsageError: if two places are one machine.
    """

    async def look(place: str, transport: Transport) -> Site:
        with telling(tell, "look at", place):
            command = commands.probe(cluster, "survey", bin_dir=None, ports=[Rpc().port], files=(), env={})
            return parse_site(place, places[place], await ask(transport, command))

    async with open_all(places) as opened:
        looked = await on_all(opened.done, look)
    raise_all([*opened.failed.values(), *looked.failed.values()])
    _demand_different_machines(looked.done)
    return named(tuple(looked.done.values()))


def parse_site(place: str, destination: Destination | None, sections: Mapping[str, Section]) -> Site:
    """Read the sections of a survey; the site is called as the user called it."""
    models = filter(None, map(_MODEL.fullmatch, sections["models"].lines))
    # SSH_CONNECTION, as sshd sets it: client address and port, server address and port.
    ssh = sections["ssh"].text.split()
    return Site(
        name=place,
        destination=destination,
        as_head=parse_facts(place, Role.HEAD, (), sections),
        as_worker=parse_facts(place, Role.WORKER, (), sections),
        models={model["path"]: int(model["bytes"]) for model in models},
        ssh_address=ssh[2] if len(ssh) == 4 else None,
    )


def named(sites: tuple[Site, ...]) -> tuple[Site, ...]:
    """Return the sites with names that an inventory takes, each once: of the alias, or where that is an address,
    of the machine itself.
    """
    taken: set[str] = set()
    result = []
    for site in sites:
        name = _name(site)
        others = (f"{name[: MAX_NAME - 4]}-{number}" for number in range(2, len(sites) + 2))
        free = next(each for each in (name, *others) if each not in taken)
        taken.add(free)
        result.append(replace(site, name=free))
    return tuple(result)


def _name(site: Site) -> str:
    host = site.destination.host if site.destination else ""
    if not host or ":" in host or _is_ipv4(host):
        host = site.as_head.observation.system.hostname
    label = re.sub("[^a-z0-9]+", "-", host.partition(".")[0].lower()).strip("-")
    return label[:MAX_NAME] or "node"


def _is_ipv4(host: str) -> bool:
    try:
        IPv4Address(host)
    except AddressValueError:
        return False
    return True


def _demand_different_machines(sites: Mapping[str, Site]) -> None:
    """Containers share the boot id of their host, but not its addresses."""
    seen: dict[object, str] = {}
    for place, site in sites.items():
        machine = (site.as_head.observation.system.boot_id, site.as_head.addresses)
        if machine in seen:
            raise UsageError(
                f"{seen[machine]} and {place} are one machine", hint="name each machine once, by one of its names"
            )
        seen[machine] = place
