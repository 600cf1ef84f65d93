"""Errors on stderr: what happened where, what the log said, what to do next."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from clusterctl.errors import ClusterctlError, ConfigError, NodesFailed
from clusterctl.ui.console import notes_console, say
from clusterctl.ui.problems import hint_line
from clusterctl.ui.safe import printable
from clusterctl.ui.screen import Screen
from clusterctl.ui.tables import outside
from clusterctl.ui.units import count


def show_error(screen: Screen, error: ClusterctlError) -> None:
    """Print an error with its node, log, hint and notes; where several nodes failed, each node's error."""
    console = notes_console(screen)
    for line in error_lines(error):
        say(console, line)


def error_lines(error: ClusterctlError) -> Iterator[Text]:
    """Yield the lines of an error; the faults of a file come as `file:line:column: …`, which editors open."""
    if isinstance(error, NodesFailed):
        for cause in error.errors:
            yield from error_lines(cause)
    else:
        yield from _message(error)
    for line in error.log:
        yield Text(_margin("  | ", line), "dim")
    if error.hint:
        yield hint_line(error.hint)
    for note in getattr(error, "__notes__", ()):
        yield Text.assemble(("note", "yellow"), ": ", outside(note))


def _message(error: ClusterctlError) -> Iterator[Text]:
    label = ("error", "red")
    if not isinstance(error, ConfigError):
        yield Text.assemble(label, _margin(": ", str(error)))
        return
    yield Text.assemble(label, f": {count(len(error.faults), 'fault')} found")
    yield from (outside(str(fault)) for fault in error.faults)


def _margin(start: str, text: str) -> str:
    """Begin with `start`, and set off every further line, so that none can pass for one of ours."""
    return start + printable(text).replace("\n", "\n  | ")
