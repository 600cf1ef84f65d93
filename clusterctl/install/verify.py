"""Whether the builds work where they lie, and are all the same: asked of the programs before they are used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from clusterctl.cluster.examine import skew_error
from clusterctl.cluster.facts import NodeFacts, probe
from clusterctl.cluster.installed import ROOT
from clusterctl.cluster.preflight import judge_node
from clusterctl.cluster.skew import judge_skew
from clusterctl.config.inventory import Inventory, Llama, Node
from clusterctl.errors import InstallFailed, raise_all
from clusterctl.install.site import Site
from clusterctl.llama.build_pin import satisfies_pin
from clusterctl.llama.sameness import Sameness
from clusterctl.remote.fanout import on_all
from clusterctl.reports import SkewReport

# Of what `check` looks at, what a build alone decides: ports and addresses are no fault of it.
CODES = {
    "backend-missing",
    "devices-unknown",
    "help-unreadable",
    "library-missing",
    "program-missing",
    "rpc-not-built",
}
# A cluster that runs goes on with its old build; it is no fault of the new one.
OF_PROCESSES = "running process"


async def probe_nodes(sites: Mapping[str, Site], inventory: Inventory) -> Mapping[str, NodeFacts]:
    """Gather the facts of every node, as the inventory has it find its programs.

    Raises:
        NodeUnreachable: if a node is gone.
    """
    transports = {node.name: site.transport for site in sites.values() for node in site.nodes}
    looked = await on_all(
        transports, lambda name, transport: probe(transport, inventory, inventory.node(name), (), ())
    )
    return looked.all_done()


def inventory_of(inventory: Inventory, sites: Mapping[str, Site], directories: Mapping[str, str]) -> Inventory:
    """The inventory as it would be if each site used the build in its directory."""
    places = {node.name: directories[name] for name, site in sites.items() for node in site.nodes}

    def moved(node: Node) -> Node:
        llama = Llama(bin_dir=f"{ROOT}/{places[node.name]}", build=node.llama.build)
        return node.model_copy(update={"llama": llama})

    return inventory.model_copy(update={"nodes": tuple(moved(node) for node in inventory.nodes)})


def demand_working(inventory: Inventory, facts: Mapping[str, NodeFacts], pin: str | None) -> SkewReport:
    """Return the comparison of the builds, which all match; what else runs on the nodes does not count.

    Raises:
        InstallFailed: for every program that does not run, lacks RPC or its backend, or is not what `pin` names.
        BuildSkew: if the builds differ, or can't be told.
    """
    problems = [
        InstallFailed(problem.message, node=node.name, hint=problem.hint or None)
        for node in inventory.nodes
        for problem in judge_node(inventory, None, node, facts[node.name])
        if problem.code in CODES
    ]
    raise_all(problems)
    if pin:
        raise_all([error for own in facts.values() if (error := _wrong_build(own, pin))])
    skew = judge_skew(inventory, facts)
    counted = tuple(each for each in skew.evidence if each.subject != OF_PROCESSES)
    if differing := skew_error(replace(skew, evidence=counted)):
        raise differing
    return skew


def _wrong_build(own: NodeFacts, pin: str) -> InstallFailed | None:
    """A build that says it is another is refused; one that can't tell is not, but the report says so."""
    comparison = satisfies_pin(own.build, pin)
    if comparison.verdict is not Sameness.MISMATCH:
        return None
    return InstallFailed(
        comparison.reason.replace("pinned", "asked for"), node=own.node, hint="is it the right file?"
    )
