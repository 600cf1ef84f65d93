"""What of a cluster runs already, seen from its records: what `up` must do first. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from enum import StrEnum

from clusterctl.cluster.facts import NodeFacts
from clusterctl.cluster.membership import parse_membership
from clusterctl.cluster.places import place_of
from clusterctl.cluster.record import Process
from clusterctl.config.inventory import Inventory
from clusterctl.config.recipe import Recipe

_UNIMPORTANT_NODE_KEYS = ("labels", "ssh", "host", "speed")
_UNIMPORTANT_RECIPE_KEYS = {"source", "expect"}


class Standing(StrEnum):
    """Nothing is there; only remains without a head, or of a `down`; the very cluster asked for; it, but broken;
    another one, or one that was elsewhere.
    """

    NOTHING = "nothing"
    REMAINS = "remains"
    SAME = "same"
    BROKEN = "broken"
    OTHER = "other"


def inputs_digest(inventory: Inventory, recipe: Recipe, facts: Mapping[str, NodeFacts]) -> str:
    """A digest of all that decides a plan but for free memory, which the cluster itself changes."""
    nodes = [node.model_dump(mode="json", exclude=set(_UNIMPORTANT_NODE_KEYS)) for node in inventory.nodes]
    document = {
        "inventory": {**inventory.model_dump(mode="json", include={"cluster", "network"}), "nodes": nodes},
        "recipe": recipe.model_dump(mode="json", exclude=_UNIMPORTANT_RECIPE_KEYS),
        "programs": {name: sorted(p.fingerprint for p in own.programs) for name, own in facts.items()},
        "files": {name: dict(own.files) for name, own in facts.items()},
    }
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:16]


def processes_of(facts: Mapping[str, NodeFacts]) -> dict[str, Process]:
    """Every program on record on any of the nodes, by the name it was started under."""
    found: dict[str, Process] = {}
    for own in facts.values():
        found |= own.observation.processes
    # A node's own machine is asked last, so that its word counts.
    for name, own in facts.items():
        if process := own.observation.process(name):
            found[name] = process
    return found


def standing_of(inventory: Inventory, facts: Mapping[str, NodeFacts], digest: str) -> Standing:
    """Judge what runs against what is asked for."""
    processes = processes_of(facts)
    head = processes.get(inventory.head.name)
    membership = parse_membership(facts[inventory.head.name].observation.membership)
    if head is None or not head.runs or (membership is not None and membership.is_leaving):
        return Standing.REMAINS if processes or membership is not None else Standing.NOTHING
    if head.record.inputs != digest:
        return Standing.OTHER
    if membership is None:
        return Standing.BROKEN
    seen = {name: own.observation for name, own in facts.items()}
    if any(m.name not in processes and place_of(m, inventory, seen) != m.name for m in membership.members):
        return Standing.OTHER
    members = [processes.get(member.name) for member in membership.members]
    whole = all(process and process.runs and process.record.inputs == digest for process in members)
    return Standing.SAME if members and whole else Standing.BROKEN
