"""Do all nodes run the same build? Pure. What can't be told is never a match.

What counts on a worker is its worker program, which has no `--version`: its library names its commit. Only where
that says nothing does the `llama-server` beside it speak for it. On the head `llama-server` speaks for itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from clusterctl.cluster.facts import NodeFacts
from clusterctl.config.inventory import Inventory, Node
from clusterctl.llama.build_pin import satisfies_pin
from clusterctl.llama.library_commit import library_commit_verdict
from clusterctl.llama.sameness import Comparison, Sameness, compare_builds
from clusterctl.model import Build
from clusterctl.reports import SkewEvidence, SkewGroup, SkewReport

_GRAVITY = (Sameness.MISMATCH, Sameness.SAME_TAG_OTHER_SOURCE, Sameness.UNKNOWN, Sameness.MATCH)


def judge_skew(inventory: Inventory, facts: Mapping[str, NodeFacts]) -> SkewReport:
    """Compare every node with the head and with its pin; nodes without facts are unknown."""
    evidence = [item for node in inventory.nodes for item in _judge_node(inventory, node, facts)]
    verdicts = [Sameness(item.verdict) for item in evidence]
    worst = min(verdicts, key=_GRAVITY.index, default=Sameness.UNKNOWN)
    status = Sameness.MISMATCH if worst is Sameness.SAME_TAG_OTHER_SOURCE else worst
    return SkewReport(status.value, _groups(inventory, facts), tuple(evidence))


def _judge_node(inventory: Inventory, node: Node, facts: Mapping[str, NodeFacts]) -> Iterator[SkewEvidence]:
    own = facts.get(node.name)
    head = facts.get(inventory.head.name)
    if own is None:
        yield SkewEvidence(node.name, "build", Sameness.UNKNOWN, "the node could not be reached")
        return
    if node.llama.build:
        yield _evidence(node, "pin", satisfies_pin(own.build, node.llama.build), node.llama.build)
    if node.name == inventory.head.name:
        if own.build is None:
            yield _evidence(node, "llama-server", compare_builds(own.build, own.build), None)
        return
    if head is None or head.build is None:
        reason = "the head's build is unknown, so there is nothing to compare with"
        yield SkewEvidence(node.name, "worker", Sameness.UNKNOWN, reason)
        return
    yield _evidence(node, "worker", _compare_worker(own, head.build), str(head.build))


def _compare_worker(own: NodeFacts, head: Build) -> Comparison:
    if own.worker_program is None:
        return Comparison(Sameness.UNKNOWN, "there is no worker program on the node")
    library = library_commit_verdict(head, own.library_commits)
    if library.verdict is Sameness.UNKNOWN and _may_speak_for_worker(own):
        comparison = compare_builds(own.build, head)
        return Comparison(comparison.verdict, f"{comparison.reason} (llama-server beside the worker)")
    return library


def _may_speak_for_worker(own: NodeFacts) -> bool:
    """Whether `llama-server` lies beside the worker, and the worker's library has no local changes of its own."""
    if own.head_program is None or own.worker_program is None:
        return False
    is_changed = any(commit.endswith("-dirty") for commit in own.library_commits)
    return not is_changed and _directory(own.head_program[0]) == _directory(own.worker_program.path)


def _evidence(node: Node, subject: str, comparison: Comparison, wanted: str | None) -> SkewEvidence:
    fix = ""
    if comparison.verdict is not Sameness.MATCH:
        where = node.host if node.connection == "ssh" else "this machine"
        fix = f"put {wanted or 'a build that tells its version'} of llama.cpp on {where}"
    return SkewEvidence(node.name, subject, comparison.verdict, comparison.reason, fix)


def _groups(inventory: Inventory, facts: Mapping[str, NodeFacts]) -> tuple[SkewGroup, ...]:
    groups: list[tuple[Build | None, list[str]]] = []
    for node in inventory.nodes:
        build = stated_build(facts.get(node.name))
        for known, names in groups:
            if compare_builds(known, build).verdict is Sameness.MATCH:
                names.append(node.name)
                break
        else:
            groups.append((build, [node.name]))
    return tuple(SkewGroup(str(build or "unknown"), tuple(names)) for build, names in groups)


def stated_build(own: NodeFacts | None) -> Build | None:
    """The build a node states: its `llama-server`'s, else the one commit that its worker's library names."""
    if own is None:
        return None
    if own.build is None and len(own.library_commits) == 1:
        return Build(commit=next(iter(own.library_commits)))
    return own.build


def _directory(path: str) -> str:
    return path.rpartition("/")[0]
