"""Known faults of builds and settings, matched against a plan: those shipped, and the user's own beside them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from clusterctl.cluster.facts import NodeFacts
from clusterctl.errors import ClusterctlError, StartFailed, UsageError
from clusterctl.llama.advisories import (
    Advisory,
    AdvisoryFacts,
    load_advisories,
    match_advisories,
    shipped_advisories,
)
from clusterctl.llama.model_header import ModelHeader
from clusterctl.llama.wire import RpcProtocol, protocol_of_build
from clusterctl.model import Advice, Severity, Split

Settings = Mapping[str, str | int | bool]


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


def as_advice(faults: tuple[Advisory, ...]) -> tuple[Advice, ...]:
    """Warnings as advice; those that can't be told for want of a build number, together in one line."""
    told = [
        Advice(a.code, f"{a.message}; {a.hint} ({a.source})") for a in faults if a.severity is Severity.WARNING
    ]
    untold = sum(a.severity is Severity.NOTE for a in faults)
    if untold:
        message = f"the build tells no number, so {untold} known faults of particular builds can't be ruled out"
        told.append(Advice("build-without-number", message))
    return tuple(told)


def demand_no_known_fault(faults: tuple[Advisory, ...], head: str) -> None:
    """Raise the first advisory that is an error; return nothing if none is.

    Raises:
        StartFailed: with the report it comes from, and how to overrule it.
    """
    for advisory in faults:
        if advisory.severity is Severity.ERROR:
            raise _refusal(advisory, head)


def _refusal(advisory: Advisory, head: str) -> ClusterctlError:
    return StartFailed(
        f"known to fail: {advisory.message} ({advisory.source})",
        node=head,
        hint=f"{advisory.hint}; to overrule, give `{advisory.code}` another severity in"
        f" {own_advisories_file(os.environ)}",
    )


def _text(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
