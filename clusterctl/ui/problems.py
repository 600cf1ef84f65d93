"""Problems as lines: severity, message, code, and the next step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.padding import Padding
from rich.text import Text

from clusterctl.model import Problem, Severity
from clusterctl.ui.tables import indented, outside
from clusterctl.ui.units import count

STYLES = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}


def problem_lines(problems: Iterable[Problem]) -> Iterator[Padding]:
    """Yield the problems, gravest first, each with its hint below."""
    gravity = list(Severity)
    for problem in sorted(problems, key=lambda problem: gravity.index(problem.severity)):
        severity = Text(problem.severity.value, STYLES[problem.severity])
        yield indented(
            Text.assemble(severity, ": ", outside(problem.message), " ", outside(f"[{problem.code}]", "dim"))
        )
        if problem.hint:
            yield indented(hint_line(problem.hint), 4)


def hint_line(hint: str) -> Text:
    """Return the next step that is offered to the user."""
    return Text.assemble(("hint", "cyan"), ": ", outside(hint))


def severity_counts(problems: Iterable[Problem]) -> str:
    """Return `0 errors` or `2 errors, 1 warning`."""
    severities = [problem.severity for problem in problems]
    errors, warnings = severities.count(Severity.ERROR), severities.count(Severity.WARNING)
    return count(errors, "error") + (f", {count(warnings, 'warning')}" if warnings else "")
