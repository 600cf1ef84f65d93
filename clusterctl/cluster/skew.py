"""Do all nodes run the same build? Pure. What can't be told is never a match.

What counts on a worker is its worker program, which has no `--version`: its library names its commit. Only where
that says nothing does the `llama-server` beside it speak for it. On the head `llama-server` speaks for itself,
unless its own library contradicts it. Where one side names a commit and the other none, nothing is proven.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from clusterctl.cluster.facts import NodeFacts
from clusterctl.cluster.installed import aligning_step
from clusterctl.cluster.preflight import program_missing
from clusterctl.cluster.record import ProcessState
from clusterctl.cluster.stated import is_changed, server_speaks, stated_build
from clusterctl.config.inventory import Inventory, Node
from clusterctl.llama.build import known_commit
from clusterctl.llama.build_pin import satisfies_pin
from clusterctl.llama.library_commit import library_commit_verdict
from clusterctl.llama.sameness import Comparison, Sameness, build_name, compare_builds
from clusterctl.llama.wire import RpcProtocol, protocol_of_build
from clusterctl.model import Build, Role
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
    yield from _judge_process(node, own)


def _judge_process(node: Node, own: NodeFacts) -> Iterator[SkewEvidence]:
    """A program that runs is of the build that was looked at only if it was started from the same files."""
    process = own.observation.process(node.name)
    if process is None or process.state not in (ProcessState.RUNNING, ProcessState.UNSURE):
        return
    program = own.server_program if own.role is Role.HEAD else own.worker_program
    if process.program_changed:
        reason = f"pid {process.pid} runs {process.record.build}; its files have been replaced since it started"
        yield SkewEvidence(node.name, "running process", Sameness.MISMATCH, reason, _RESTART)
    elif program is not None and process.record.argv[0] != program.path:
        reason = f"pid {process.pid} runs {process.record.argv[0]}, and what was looked at is {program.path}"
        yield SkewEvidence(node.name, "running process", Sameness.UNKNOWN, reason, _RESTART)


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
    wanted = stated_build(head)
    if not server_speaks(own) and wanted and satisfies_pin(wanted, pin).verdict is Sameness.MATCH:
        return _compare_worker(own, wanted)
    return satisfies_pin(stated_build(own), pin)


def _judge_head(node: Node, own: NodeFacts, step: str) -> Iterator[SkewEvidence]:
    """The head is what the others are compared with; here only whether it is of one piece, and tells its build."""
    if own.build is None:
        yield _evidence(node, "llama-server", compare_builds(None, None), step)
        return
    libraries = library_commit_verdict(own.build, own.library_commits)
    if libraries.verdict is Sameness.MISMATCH or (is_changed(own) and libraries.verdict is Sameness.UNKNOWN):
        reason = f"llama-server says {own.build}, but {libraries.reason.replace('worker', 'head')}"
        yield _evidence(node, "libraries", Comparison(libraries.verdict, reason), step)


def _judge_worker(
    node: Node, own: NodeFacts, head: NodeFacts | None, protocol: RpcProtocol | None, step: str
) -> Iterator[SkewEvidence]:
    wanted = stated_build(head)
    if wanted is None:
        reason = "the head's build is unknown, so there is nothing to compare with"
        yield SkewEvidence(node.name, "files", Sameness.UNKNOWN, reason)
        return
    yield _evidence(node, "files", _compare_worker(own, wanted), step)
    spoken_by_head = protocol_of_build(wanted.number)
    # A head accepts another patch, but it moves with the table of operators: it is another build for sure.
    if protocol and spoken_by_head and protocol != spoken_by_head:
        reason = f"the running worker speaks RPC {protocol}, and the head {spoken_by_head}"
        yield SkewEvidence(node.name, "protocol", Sameness.MISMATCH, reason, _RESTART)


def _compare_worker(own: NodeFacts, head: Build) -> Comparison:
    library = library_commit_verdict(head, own.library_commits)
    if own.library_commits and known_commit(head) is None:
        named = ", ".join(sorted(own.library_commits))
        return Comparison(Sameness.UNKNOWN, f"the worker's library names commit {named}, and the head names none")
    if library.verdict is Sameness.UNKNOWN and server_speaks(own) and not is_changed(own):
        comparison = compare_builds(own.build, head)
        return Comparison(comparison.verdict, f"{comparison.reason} (llama-server beside the worker)")
    if library.verdict is Sameness.MISMATCH:
        whole = compare_builds(stated_build(own), head)
        return whole if whole.verdict is Sameness.SAME_TAG_OTHER_SOURCE else library
    return library


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
