"""Names of people, machines and addresses replaced in what is given away, each always by the same word. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import ip_address

from clusterctl.cluster.facts import NodeFacts
from clusterctl.config.inventory import Inventory
from clusterctl.llama.log_stamp import STAMP

# Words of ours, or of every system: they give nobody away, and mean something else in most places.
COMMON_WORDS = frozenset({"head", "worker", "local", "localhost", "root", ""})

# What looks like an address at the beginning of a line is the time of a log line.
_STRANGERS = (
    rf"^(?P<stamp>{STAMP.pattern})",
    r"(?<=/home/)(?P<linux_user>[^/\s\"':]+)",
    r"(?<=/Users/)(?P<macos_user>[^/\s\"':]+)",
    r"(?<![\w.])(?P<ipv4>[0-9]{1,3}(?:\.[0-9]{1,3}){3})(?![\w.])",
    r"(?<![\w:])(?P<mac>[0-9a-f]{2}(?::[0-9a-f]{2}){5})(?![\w:])",
    r"(?<![\w:])(?P<ipv6>[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,7})(?![\w:])",
)
_WORDS = {"linux_user": "user", "macos_user": "user", "ipv4": "address", "mac": "address", "ipv6": "address"}


class Mask:
    """Replaces what is known, and every other address and home directory that it meets."""

    def __init__(self, known: Mapping[str, str]) -> None:
        self._words = {text.lower(): word for text, word in known.items() if text.lower() not in COMMON_WORDS}
        longest_first = sorted(self._words, key=len, reverse=True)
        names = "|".join(map(re.escape, longest_first)) or r"(?!)"
        patterns = (rf"(?<![\w-])(?P<known>{names})(?![\w-])", *_STRANGERS)
        self._pattern = re.compile("|".join(patterns), re.IGNORECASE | re.MULTILINE)

    def __call__(self, text: str) -> str:
        """Return the text without them."""
        return self._pattern.sub(self._replace, text)

    def _replace(self, found: re.Match[str]) -> str:
        text, kind = found[0], str(found.lastgroup)
        if kind == "stamp" or text.lower() in COMMON_WORDS or (_WORDS.get(kind) == "address" and _is_plain(text)):
            return text
        if text.lower() not in self._words:
            word = _WORDS[kind]
            met = sum(each.startswith(f"{word}-") for each in self._words.values())
            self._words[text.lower()] = f"{word}-{met + 1}"
        return self._words[text.lower()]


def known_words(inventory: Inventory, facts: Mapping[str, NodeFacts]) -> dict[str, str]:
    """What to replace by what: the names and addresses of all nodes, and the users that work on them."""
    words: dict[str, str] = {}
    users = {node.ssh.user for node in inventory.nodes if node.ssh.user}
    for number, node in enumerate(inventory.nodes, 1):
        words |= {node.name: f"node-{number}", node.host: f"node-{number}"}
    for number, node in enumerate(inventory.nodes, 1):
        if node.name not in facts:
            continue
        own = facts[node.name]
        users.add(own.observation.system.user)
        words.setdefault(own.observation.system.hostname, f"node-{number}")
        places = [each.address for each in own.addresses if not _is_plain(each.address)]
        words |= {place: f"node-{number}-address-{count}" for count, place in enumerate(places, 1)}
        for process in own.observation.processes.values():
            user, _, machine = process.record.owner.partition("@")
            users.add(user)
            words.setdefault(machine, "operator")
    return {**{name: f"user-{number}" for number, name in enumerate(sorted(users), 1)}, **words}


def _is_plain(text: str) -> bool:
    """Whether an address is everybody's (loopback, any, a netmask), or none at all."""
    try:
        address = ip_address(text)
    except ValueError:
        # A hardware address has a kind of its own; all else that fails is a version or a time.
        return text.count(":") != 5
    return address.is_loopback or address.is_unspecified or text.startswith("255.")
