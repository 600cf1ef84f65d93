"""What machines a run was measured on, with a fingerprint that tells them from others. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict

from clusterctl.cluster.facts import NodeFacts
from clusterctl.measurements import Hardware, NodeHardware
from clusterctl.model import Device

FINGERPRINT_DIGITS = 12


def hardware_of(facts: Mapping[str, NodeFacts]) -> Hardware:
    """Return the machines behind the facts, in their order.

    Free memory and addresses are left out: they change, and measure nothing.
    """
    nodes = tuple(
        NodeHardware(
            node=name,
            os=own.observation.system.os,
            arch=own.observation.system.arch,
            devices=tuple(map(_device, own.devices or ())),
        )
        for name, own in facts.items()
    )
    text = json.dumps([asdict(node) for node in nodes], sort_keys=True)
    return Hardware(hashlib.sha256(text.encode(errors="replace")).hexdigest()[:FINGERPRINT_DIGITS], nodes)


def _device(device: Device) -> str:
    memory = "unknown memory" if device.total_mib is None else f"{device.total_mib} MiB"
    return f"{device.name}: {device.description} ({memory})"
