"""What the Linux kernel's drivers say of the memory of cards, and of what a process holds there.

It needs no vendor's tool, and starts none. Files of amdgpu (gpu/amdgpu/driver-misc in the kernel's
documentation), of AMD's compute driver (/sys/class/kfd/kfd/proc), and the text that every open card has
(gpu/drm-usage-stats).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from clusterctl.llama.vendor_tools import CardMemory
from clusterctl.model import MIB

_CARD = re.compile(r"^(\S+) ([0-9]{1,20}) ([0-9]{1,20})$", re.MULTILINE)
_KFD = re.compile(r"^kfd ([0-9]{1,20})$", re.MULTILINE)
_DRM = re.compile(r"^drm-([a-z0-9-]+):\s+(\S+)(?: ([KM]iB))?\s*$")
# `memory` is the older name of `resident`; `gtt` is the part of the host's memory that a card works in.
_REGION = re.compile(r"^(?:resident|memory)-((?:vram|local|gtt)[0-9]*)$")
_UNITS = {None: 1, "KiB": 1024, "MiB": MIB}


def parse_amd_cards(text: str) -> tuple[CardMemory, ...]:
    """Read lines `CARD TOTAL USED` in bytes."""
    return tuple(
        CardMemory(name, int(total) // MIB, max(0, int(total) - int(used)) // MIB)
        for name, total, used in _CARD.findall(text)
    )


def parse_device_memory(text: str) -> float | None:
    """Return the MiB that a process holds on cards; `None` if its drivers tell nothing.

    AMD's compute memory may show in both places, so the greater of the two counts.
    """
    sums = [sum(map(int, _KFD.findall(text))), sum(_regions(text).values())]
    return max(sums) / MIB if "kfd " in text or _regions(text) else None


def _regions(text: str) -> dict[tuple[str, str, str], int]:
    """The bytes in each region of each client of each card; one client may be open many times."""
    found: dict[tuple[str, str, str], int] = {}
    card = client = ""
    for key, value, unit in _drm_lines(text):
        if key == "driver":
            card = client = ""
        elif key == "pdev":
            card = value
        elif key == "client-id":
            client = value
        elif (region := _REGION.match(key)) and value.isascii() and value.isdecimal():
            place = (card, client, region[1])
            found[place] = max(found.get(place, 0), int(value) * _UNITS[unit])
    return found


def _drm_lines(text: str) -> Iterator[tuple[str, str, str | None]]:
    for line in text.splitlines():
        if match := _DRM.match(line):
            yield match[1], match[2], match[3]
