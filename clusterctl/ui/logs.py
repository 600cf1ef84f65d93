"""Log lines of several nodes, merged: the node in front, in a colour of its own."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from clusterctl.ui.console import data_console, notes_console, say
from clusterctl.ui.problems import hint_line
from clusterctl.ui.safe import one_line
from clusterctl.ui.screen import Screen
from clusterctl.ui.tables import outside

STYLES = ("cyan", "magenta", "green", "yellow", "blue", "red")


class LogPrinter:
    """Prints lines to stdout as they come; whatever a node writes is shown, never obeyed."""

    def __init__(self, screen: Screen, nodes: Sequence[str]) -> None:
        self._console = data_console(screen)
        self._width = max(map(len, nodes), default=0)
        self._styles = {node: STYLES[index % len(STYLES)] for index, node in enumerate(nodes)}

    def __call__(self, node: str, text: str) -> None:
        """Print one line."""
        prefix = Text(f"{one_line(node):<{self._width}} │ ", self._styles.get(node, ""))
        self._console.print(prefix.append(one_line(text), "default"), soft_wrap=True)


def show_waiting(screen: Screen, cluster: str) -> None:
    """Print to stderr that there is nothing to show yet."""
    say(notes_console(screen), Text(f"no logs of cluster {cluster} yet; waiting for its programs, until Ctrl-C"))


def show_cause(screen: Screen, node: str, cause: str, next_step: str, line: str) -> None:
    """Print to stderr what the logs tell of a failure, with the line that tells it."""
    console = notes_console(screen)
    say(console, Text.assemble(("likely cause", "yellow"), ": ", outside(node, "bold"), ": ", outside(cause)))
    if line:
        say(console, Text.assemble("  | ", outside(line), style="dim"))
    say(console, hint_line(next_step))
