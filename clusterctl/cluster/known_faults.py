"""Known faults of builds and settings, matched against a plan: those shipped, and the user's own beside them."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from clusterctl.cluster.facts import NodeFacts
from clusterctl.cluster.offers import devices_of
from clusterctl.config.inventory import Inventory, Node
from clusterctl.errors import StartFailed, UsageError
from clusterctl.llama.advisories import (
    Advisory,
    AdvisoryFacts,
    load_advisories,
    match_advisories,
    shipped_advisories,
)
from clusterctl.llama.backends import device_backend
from clusterctl.llama.model_header import ModelHeader
from clusterctl.llama.wire import RpcProtocol, protocol_of_build
from clusterctl.model import Advice, Problem, Severity, Split

Settings = Mapping[str, str | int | bool]
_OF_RECIPE = frozenset({"architecture", "settings", "settings_differ"})


def own_advisories_file(environment: Mapping[str, str]) -> Path:
    """Where a user keeps advisories of their own; one with the code of a shipped one replaces it."""
    base = environment.get("XDG_CONFIG_HOME") or str(Path(environment.get("HOME", "~")).expanduser() / ".config")
    return Path(base) / "clusterctl" / "advisories.yaml"


def load_all_advisories(environment: Mapping[str, str] = os.environ) -> tuple[Advisory, ...]:
    """Return the shipped advisories and the user's own.

    Raises:
        ConfigError: with every fault of the user's file.
        UsageError: if it is there but can't be read.
    """
    file = own_advisories_file(environment)
    try:
        own = load_advisories(file.read_text("utf-8"), file=str(file))
    except FileNotFoundError:
        own = ()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} can't be read: {error}", hint="mend it, or move it away") from error
    replaced = {advisory.code for advisory in own}
    return (*own, *(advisory for advisory in shipped_advisories() if advisory.code not in replaced))


def find_known_faults(
    facts: Mapping[str, NodeFacts],
    head: str,
    header: ModelHeader,
    split: Split,
    settings: Settings,
    protocol: RpcProtocol | None,
) -> tuple[Advisory, ...]:
    """Return what is known to fail of this plan, and as notes what can't be ruled out.

    `protocol` is what the workers answered, `None` while none runs.
    """
    build = facts[head].build
    number = build.number if build else None
    return match_advisories(
        load_all_advisories(),
        AdvisoryFacts(
            build_number=number,
            protocol=protocol or protocol_of_build(number),
            uses_rpc=any(not share.offer.is_local for share in split.shares),
            backends=tuple(share.offer.backend for share in split.shares),
            architecture=header.architecture,
            settings={name: _text(value) for name, value in settings.items()},
        ),
    )


def find_faults_of_nodes(inventory: Inventory, facts: Mapping[str, NodeFacts]) -> tuple[Advisory, ...]:
    """Return what is known to fail on these nodes with any model and settings, and what can't be ruled out."""
    build = facts[inventory.head.name].build
    number = build.number if build else None
    takes_part = [node for node in inventory.nodes if not node.serve_only]
    return match_advisories(
        [row for row in load_all_advisories() if _OF_RECIPE.isdisjoint(row.conditions)],
        AdvisoryFacts(
            build_number=number,
            protocol=protocol_of_build(number),
            uses_rpc=bool(inventory.workers),
            backends=tuple(each for node in takes_part for each in _backends(node, facts.get(node.name))),
            architecture=None,
            settings={},
        ),
    )


def as_problems(faults: Collection[Advisory]) -> Iterator[Problem]:
    """What applies, each as a problem, and those that can't be told together as a note."""
    told = [advisory for advisory in faults if advisory.is_certain]
    yield from map(_problem, told)
    if len(told) < len(faults):
        yield Problem(
            "faults-not-ruled-out",
            Severity.NOTE,
            "too little is known to rule out some known faults of llama.cpp",
            "`clusterctl plan --explain` lists them",
        )


def as_advice(faults: tuple[Advisory, ...]) -> tuple[Advice, ...]:
    """What applies but does not stop `up`, and that some can't be told."""
    problems = [problem for problem in as_problems(faults) if problem.severity is not Severity.ERROR]
    return tuple(Advice(problem.code, f"{problem.message}; {problem.hint}") for problem in problems)


def demand_no_known_fault(faults: tuple[Advisory, ...], head: str) -> None:
    """Raise the first advisory that is an error; return nothing if none is.

    Raises:
        StartFailed: with the report it comes from, and how to overrule it.
    """
    for problem in as_problems(faults):
        if problem.severity is Severity.ERROR:
            raise StartFailed(problem.message, node=head, hint=problem.hint)


def _problem(advisory: Advisory) -> Problem:
    problem = advisory.as_problem()
    if problem.severity is not Severity.ERROR:
        return problem
    overrule = f"to overrule, give `{advisory.code}` another severity in {own_advisories_file(os.environ)}"
    return replace(problem, message=f"known to fail: {problem.message}", hint=f"{problem.hint}; {overrule}")


def _backends(node: Node, facts: NodeFacts | None) -> tuple[str | None, ...]:
    if facts is None or facts.devices is None:
        return (None,)
    return tuple(device_backend(device.name) for device in devices_of(node, facts))


def _text(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
