"""Do all nodes run the same build? Pure. What can't be told is never a match.

What counts on a worker is its worker program, which has no `--version`: its library names its commit. Only where
that says nothing does the `llama-server` beside it speak for it. On the head `llama-server` speaks for itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from clusterctl.cluster.facts import NodeFacts
from clusterctl.cluster.installed import aligning_step
from clusterctl.cluster.preflight import program_missing
from clusterctl.config.inventory import Inventory, Node
from clusterctl.llama.build_pin import satisfies_pin
from clusterctl.llama.library_commit import library_commit_verdict
from clusterctl.llama.sameness import Comparison, Sameness, build_name, compare_builds
from clusterctl.llama.wire import RpcProtocol, accepts, protocol_of_build
from clusterctl.model import Build
from clusterctl.reports import SkewEvidence, SkewGroup, SkewReport

_RESTART = "restart it: `clusterctl up --replace`"
_GRAVITY = (Sameness.MISMATCH, Sameness.SAME_TAG_OTHER_SOURCE, Sameness.UNKNOWN, Sameness.MATCH)


def judge_skew(
    inventory: Inventory, facts: Mapping[str, NodeFacts], protocols: Mapping[str, RpcProtocol] | None = None
) -> SkewReport:
    """Compare every node with the head and with its pin; nodes without facts are unknown.

    `protocols` are what running workers answered to the head's HELLO.
    """
    spoken = protocols or {}
    evidence = [item for node in inventory.nodes for item in _judge_node(inventory, node, facts, spoken)]
    verdicts = [Sameness(item.verdict) for item in evidence]
    worst = min(verdicts, key=_GRAVITY.index, default=Sameness.MATCH)
    status = Sameness.MISMATCH if worst is Sameness.SAME_TAG_OTHER_SOURCE else worst
    return SkewReport(status.value, _groups(inventory, facts), tuple(evidence))


def _judge_node(
    inventory: Inventory,
    node: Node,
    facts: Mapping[str, NodeFacts],
    protocols: Mapping[str, RpcProtocol],
) -> Iterator[SkewEvidence]:
    own = facts.get(node.name)
    if own is None:
        yield SkewEvidence(node.name, "files", Sameness.UNKNOWN, "the node could not be reached")
        return
    is_head = node.name == inventory.head.name
    if (own.head_program if is_head else own.worker_program) is None:
        missing = program_missing(node, own)
        yield SkewEvidence(node.name, "files", Sameness.UNKNOWN, missing.message, missing.hint)
    else:
        yield from _judge_files(inventory, node, own, facts.get(inventory.head.name), protocols)
    process = own.observation.process(node.name)
    if process and process.runs and process.program_changed:
        reason = f"pid {process.pid} runs {process.record.build}; its files have been replaced since it started"
        yield SkewEvidence(node.name, "running process", Sameness.MISMATCH, reason, _RESTART)


def _judge_files(
    inventory: Inventory,
    node: Node,
    own: NodeFacts,
    head: NodeFacts | None,
    protocols: Mapping[str, RpcProtocol],
) -> Iterator[SkewEvidence]:
    step = aligning_step(inventory, node, head.build if head else None)
    if node.llama.build:
        yield _evidence(node, "pin", _compare_with_pin(own, head, node.llama.build), step)
    if node.name == inventory.head.name:
        yield from _judge_head(node, own, step)
    else:
        yield from _judge_worker(node, own, head, protocols.get(node.name), step)


def _compare_with_pin(own: NodeFacts, head: NodeFacts | None, pin: str) -> Comparison:
    """A worker program alone tells no number: it is what is pinned if it is the same as a head that is."""
    of_head = satisfies_pin(head.build, pin).verdict if head and head.build else Sameness.UNKNOWN
    if own.head_program is None and head and head.build and of_head is Sameness.MATCH:
        return _compare_worker(own, head.build)
    return satisfies_pin(own.build, pin)


def _judge_head(node: Node, own: NodeFacts, step: str) -> Iterator[SkewEvidence]:
    """The head is what the others are compared with; here only whether it is of one piece, and tells its build."""
    if own.build is None:
        yield _evidence(node, "llama-server", compare_builds(None, None), step)
        return
    libraries = library_commit_verdict(own.build, own.library_commits)
    if libraries.verdict is Sameness.MISMATCH:
        reason = f"llama-server says {own.build}, but {libraries.reason.replace('worker', 'head')}"
        yield _evidence(node, "libraries", Comparison(Sameness.MISMATCH, reason), step)


def _judge_worker(
    node: Node, own: NodeFacts, head: NodeFacts | None, protocol: RpcProtocol | None, step: str
) -> Iterator[SkewEvidence]:
    if head is None or head.build is None:
        reason = "the head's build is unknown, so there is nothing to compare with"
        yield SkewEvidence(node.name, "files", Sameness.UNKNOWN, reason)
        return
    yield _evidence(node, "files", _compare_worker(own, head.build), step)
    spoken_by_head = protocol_of_build(head.build.number)
    if protocol and accepts(spoken_by_head, protocol) is False:
        reason = f"the running worker speaks RPC {protocol}, and the head {spoken_by_head}"
        yield SkewEvidence(node.name, "protocol", Sameness.MISMATCH, reason, _RESTART)


def _compare_worker(own: NodeFacts, head: Build) -> Comparison:
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


def _evidence(node: Node, subject: str, comparison: Comparison, step: str) -> SkewEvidence:
    fix = "" if comparison.verdict is Sameness.MATCH else step
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
    return tuple(SkewGroup(build_name(build) if build else "unknown", tuple(names)) for build, names in groups)


def stated_build(own: NodeFacts | None) -> Build | None:
    """The build a node states: its `llama-server`'s, else the one commit that its worker's library names."""
    if own is None:
        return None
    if own.build is None and len(own.library_commits) == 1:
        return Build(commit=next(iter(own.library_commits)))
    return own.build


def _directory(path: str) -> str:
    return path.rpartition("/")[0]
