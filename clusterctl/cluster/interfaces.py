"""What carries a node's addresses: kind and speed of its network interfaces, as its system tells them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What an interface is. VIRTUAL is a container's own; BRIDGE leads to containers and virtual machines only."""

    ETHERNET = "Ethernet"
    INFINIBAND = "InfiniBand"
    THUNDERBOLT = "Thunderbolt"
    VIRTUAL = "virtual link"
    UNKNOWN = "link of unknown kind"
    TUNNEL = "tunnel"
    WIFI = "Wi-Fi"
    BRIDGE = "bridge"
    LOOPBACK = "loopback"


@dataclass(frozen=True, slots=True)
class Interface:
    """A network interface; `mbit_s` is the rate agreed on the cable, `is_up` whether it has a carrier."""

    name: str
    kind: Kind = Kind.UNKNOWN
    mbit_s: int | None = None
    is_up: bool | None = None


# linux/if_arp.h
_ETHERNET, _INFINIBAND, _LOOPBACK = "1", "32", "772"
_TUNNEL_TYPES = frozenset({"wireguard", "tun", "vxlan", "geneve", "gretap", "ppp"})
# Their own rate is made up (veth) or that of nothing (tun).
_RATELESS = frozenset({Kind.VIRTUAL, Kind.TUNNEL, Kind.WIFI, Kind.LOOPBACK})
_STATES = {"up": True, "down": False, "lowerlayerdown": False, "notpresent": False}

_POSITIVE = re.compile("[1-9][0-9]{0,7}")

_LABEL = re.compile(r"^Hardware Port: (.+)\nDevice: (\S+)$", re.MULTILINE)
_LABELS = (
    (re.compile(r"wi-?fi|airport", re.IGNORECASE), Kind.WIFI),
    (re.compile(r"thunderbolt (bridge|\d+)$", re.IGNORECASE), Kind.THUNDERBOLT),
    (re.compile(r"bluetooth|iphone|ipad", re.IGNORECASE), Kind.UNKNOWN),
    (re.compile(""), Kind.ETHERNET),
)
_UNLABELLED = (
    (re.compile(r"lo\d"), Kind.LOOPBACK),
    (re.compile(r"(utun|tun|tap|zt|feth|ipsec|ppp|gif|stf)\d?"), Kind.TUNNEL),
    (re.compile(r"(bridge|vmnet|vmenet)\d"), Kind.BRIDGE),
    (re.compile(""), Kind.UNKNOWN),
)
_BLOCK = re.compile(r"^(\S+): flags=.*(?:\n[ \t].*)*", re.MULTILINE)
_MEDIA = re.compile(r"media:.*\(([0-9]{1,5})(G?)base", re.IGNORECASE)
_STATUS = re.compile(r"status: (\w+)")


@dataclass(frozen=True, slots=True)
class _Row:
    """One line of `interfaces` of linux.sh: what /sys/class/net says of an interface."""

    name: str
    state: str
    type: str
    mbit_s: str
    driver: str
    devtype: str
    lower: str


def parse_interfaces(text: str) -> Mapping[str, Interface]:
    """Return a node's interfaces by name, from what `interfaces` prints there; unknown lines are passed over."""
    lines = [line.split(" ") for line in text.splitlines()]
    rows = {words[0]: _Row(*words) for words in lines if len(words) == 7 and all(words)}
    if rows:
        return {name: _linux_interface(row, rows) for name, row in rows.items()}
    return {interface.name: interface for interface in _macos_interfaces(text)}


def _linux_interface(row: _Row, rows: Mapping[str, _Row]) -> Interface:
    kind = _linux_kind(row, rows)
    cables = [each for each in _below(row, rows) if each.driver != "-"]
    # A bridge tells a rate of its own that no cable has.
    own = [row] if row.devtype != "bridge" else []
    rates = [rate for each in (own or cables) if (rate := _rate(each)) is not None]
    return Interface(
        row.name,
        kind,
        None if kind in _RATELESS else min(rates, default=None),
        _STATES.get(row.state),
    )


def _linux_kind(row: _Row, rows: Mapping[str, _Row]) -> Kind:
    if row.type == _LOOPBACK:
        return Kind.LOOPBACK
    if row.devtype == "wlan":
        return Kind.WIFI
    if row.type == _INFINIBAND:
        return Kind.INFINIBAND
    if row.devtype in _TUNNEL_TYPES or row.type != _ETHERNET:
        return Kind.TUNNEL
    if row.driver != "-":
        return Kind.THUNDERBOLT if row.driver.startswith("thunderbolt") else Kind.ETHERNET
    order = list(Kind)
    cables = [_linux_kind(each, rows) for each in _below(row, rows) if each.driver != "-"]
    return max(cables, key=order.index, default=Kind.BRIDGE if row.devtype == "bridge" else Kind.VIRTUAL)


def _below(row: _Row, rows: Mapping[str, _Row]) -> Sequence[_Row]:
    """What an interface without hardware of its own stands on: bonds, VLANs and bridges may be stacked."""
    found = {row.name: row}
    waiting = [row]
    for each in waiting:
        for name in each.lower.split(","):
            if name in rows and name not in found:
                found[name] = rows[name]
                waiting.append(rows[name])
    return waiting[1:]


def _rate(row: _Row) -> int | None:
    return int(row.mbit_s) if _POSITIVE.fullmatch(row.mbit_s) else None


def _macos_interfaces(text: str) -> Iterator[Interface]:
    labels = {device: label for label, device in _LABEL.findall(text)}
    for block in _BLOCK.finditer(text):
        name = block[1]
        label = labels.get(name)
        words, table = (name, _UNLABELLED) if label is None else (label, _LABELS)
        kind = next(kind for pattern, kind in table if pattern.match(words))
        media, status = _MEDIA.search(block[0]), _STATUS.search(block[0])
        mbit_s = int(media[1]) * (1000 if media[2] else 1) if media else None
        is_up = status[1] == "active" if status else None
        yield Interface(name, kind, mbit_s, is_up)
