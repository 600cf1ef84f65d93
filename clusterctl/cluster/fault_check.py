"""What `check` says of known faults: those of the plan that `up` would make, else of the nodes alone."""

from __future__ import annotations

from contextlib import suppress

from clusterctl.cluster.examine import Examination
from clusterctl.cluster.known_faults import as_problems, find_faults_of_nodes
from clusterctl.cluster.model_file import Models
from clusterctl.cluster.plan import choose_plan
from clusterctl.config.inventory import Inventory
from clusterctl.config.recipe import Recipe
from clusterctl.errors import ClusterctlError
from clusterctl.llama.advisories import Advisory


def with_known_faults(
    inventory: Inventory, recipe: Recipe | None, examination: Examination, models: Models | None
) -> Examination:
    """Add the known faults to the head's problems, where `up` tells them too; without the head nothing is known.

    Raises:
        ConfigError: with every fault of the user's own file of advisories.
        UsageError: if it can't be read.
    """
    head = inventory.head.name
    if head not in examination.facts:
        return examination
    return examination.with_problems(head, as_problems(_find(inventory, recipe, examination, models)))


def _find(
    inventory: Inventory, recipe: Recipe | None, examination: Examination, models: Models | None
) -> tuple[Advisory, ...]:
    if recipe and models and not examination.failed:
        # What keeps a plan from being made is for `plan` to tell.
        with suppress(ClusterctlError):
            return choose_plan(inventory, recipe, examination.facts, models).known_faults
    return find_faults_of_nodes(inventory, examination.facts)
