"""An installation as the document of `install --json`."""

from __future__ import annotations

from collections.abc import Sequence

from clusterctl.cluster.stated import stated_build
from clusterctl.install.installation import Installation
from clusterctl.install.verify import OF_PROCESSES
from clusterctl.install_reports import InstalledNode, InstallReport
from clusterctl.llama.build_pin import satisfies_pin
from clusterctl.llama.sameness import Sameness
from clusterctl.reports import BuildReport, ProgramsReport, StepReport


def install_report(done: Installation, steps: Sequence[StepReport]) -> InstallReport:
    """The report of an installation that has come to its end."""
    evidence = done.skew.evidence if done.skew else ()
    return InstallReport(
        ok=True,
        changed=done.real and bool(done.changes or done.missing),
        build=done.order.name if done.order else None,
        confirmed=_confirmed(done),
        nodes=tuple(_node(done, name, node.name) for name, site in done.sites.items() for node in site.nodes),
        skew=done.skew,
        restart=tuple(each.node for each in evidence if each.subject == OF_PROCESSES),
        steps=tuple(steps),
    )


def _confirmed(done: Installation) -> bool | None:
    if done.order is None or not done.facts:
        return None
    pin = done.order.name
    return all(satisfies_pin(own.build, pin).verdict is Sameness.MATCH for own in done.facts.values())


def _node(done: Installation, site: str, name: str) -> InstalledNode:
    before, now = done.old_links[site].current, done.links[site].current
    facts = done.facts.get(name)
    build = stated_build(facts)
    return InstalledNode(
        name=name,
        before=before,
        now=now,
        build=BuildReport(build.tag, build.number, build.commit, build.version) if build else None,
        programs=ProgramsReport(
            facts.head_program[0] if facts.head_program else None,
            facts.worker_program.path if facts.worker_program else None,
        )
        if facts
        else None,
    )
