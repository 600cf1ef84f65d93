"""What `check` will say of an inventory that `init` is about to write, known without asking the nodes again."""

from __future__ import annotations

from collections.abc import Sequence

from clusterctl.cluster.examine import Examination, check_report
from clusterctl.cluster.fault_check import with_known_faults
from clusterctl.cluster.preflight import judge_node
from clusterctl.cluster.skew import judge_skew
from clusterctl.cluster.survey import Site
from clusterctl.cluster.ways import Ways
from clusterctl.config.inventory import Inventory
from clusterctl.reports import CheckReport


def foresee_check(inventory: Inventory, sites: Sequence[Site]) -> CheckReport:
    """Judge the sites as the nodes of this inventory; only the ways between them are not known yet."""
    facts = {site.name: site.facts(inventory.node(site.name).role) for site in sites}
    problems = {name: judge_node(inventory, None, inventory.node(name), own) for name, own in facts.items()}
    examination = Examination(facts, {}, judge_skew(inventory, facts), problems, Ways())
    return check_report(inventory, with_known_faults(inventory, None, examination, None))
