"""The interfaces that RPC traffic takes at the head and at a worker, as far as the nodes tell. Pure.

What is not known is not spoken of: neither as a fault nor as sound.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

from clusterctl.cluster.facts import NodeFacts
from clusterctl.cluster.interfaces import Interface, Kind
from clusterctl.cluster.link import UNMEASURED, Link, load_time
from clusterctl.model import Address, Problem, Severity

NARROW_MBIT_S = 100


@dataclass(frozen=True, slots=True)
class End:
    """A node, and the interface that carries its side of a link."""

    node: str
    interface: Interface


def ends_of(head: NodeFacts, worker: NodeFacts, address: str) -> tuple[End, ...]:
    """Return the known ends of the way from `head` to the worker's `address`.

    The head takes the interface whose network holds the address, the smallest network first, as kernels do. Its
    end is unknown where two interfaces are in it, and where a router is between. What stays on one machine takes
    no interface.
    """
    ip = IPv4Address(address)
    if any(own.address == address for own in head.addresses):
        return ()
    near = [own for own in head.addresses if ip in IPv4Network((own.address, own.prefix_length), strict=False)]
    longest = max((own.prefix_length for own in near), default=0)
    sides = (
        (head, [own for own in near if own.prefix_length == longest]),
        (worker, [own for own in worker.addresses if own.address == address]),
    )
    return tuple(End(facts.node, found) for facts, used in sides if (found := _interface(facts, used)))


def end_problems(ends: Iterable[End], link: Link = UNMEASURED) -> Iterator[Problem]:
    """What is wrong with the interfaces of a link; `link` is what was measured of it."""
    for end in ends:
        name, mbit_s = f"{end.interface.name} of {end.node}", end.interface.mbit_s
        if end.interface.kind is Kind.WIFI:
            yield Problem(
                "wifi-link",
                Severity.WARNING,
                f"{name} is Wi-Fi{_measured(link)}; its rate and delay change from one moment to the next, and"
                " every token waits for it",
                "use a cable, and name its network in `network` or the worker's rpc.address",
            )
        elif mbit_s is not None and mbit_s <= NARROW_MBIT_S:
            yield Problem(
                "narrow-link",
                Severity.WARNING,
                f"{name} runs at {mbit_s} Mbit/s; {load_time(mbit_s)}, and what each token sends is small",
                "look at cable and switch: a damaged cable runs at 100 Mbit/s; `rpc.cache: true` sends the"
                " weights only once",
            )


def _interface(facts: NodeFacts, used: Iterable[Address]) -> Interface | None:
    names = {own.interface for own in used}
    return facts.interfaces.get(names.pop()) if len(names) == 1 else None


def _measured(link: Link) -> str:
    if link.mbit_s is None or link.round_trip_ms is None:
        return ""
    return f" ({link.mbit_s:.0f} Mbit/s and {link.round_trip_ms:.1f} ms just now)"
