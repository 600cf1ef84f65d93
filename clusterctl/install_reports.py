"""What `install` answers: the document of `install --json`, as frozen types, under the rules of reports.py."""

from __future__ import annotations

from dataclasses import dataclass

from clusterctl.reports import BuildReport, ProgramsReport, SkewReport, StepReport


@dataclass(frozen=True, slots=True)
class InstalledNode:
    """One node: the build it used before and the one it uses now, as directories; `build` is what that states."""

    name: str
    before: str | None
    now: str | None
    build: BuildReport | None = None
    programs: ProgramsReport | None = None


@dataclass(frozen=True, slots=True)
class InstallReport:
    """The answer of `install`. `restart` are nodes whose running program is still of the build before.

    `confirmed`: whether the programs themselves say that they are `build`, as those from shallow clones can't.
    `build` and `confirmed` are null for a rollback, `confirmed` and `skew` for a dry run.
    """

    ok: bool
    changed: bool
    build: str | None
    confirmed: bool | None
    nodes: tuple[InstalledNode, ...]
    skew: SkewReport | None
    restart: tuple[str, ...]
    steps: tuple[StepReport, ...]
