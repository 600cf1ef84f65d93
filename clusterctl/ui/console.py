"""The two streams: `data` is what was asked for (stdout), `notes` is everything else (stderr)."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Mapping

from rich.console import Console
from rich.text import Text

from clusterctl.ui.screen import Screen

PIPE_WIDTH = 120


class _Console(Console):
    """A console that leaves a reader who went away to the caller, where rich would end the program."""

    def on_broken_pipe(self) -> None:
        """Say what happened, as any other write does."""
        raise BrokenPipeError


def data_console(screen: Screen) -> Console:
    """Return the console for the data that a command was asked for: stdout."""
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        # A node's text may hold what the locale can't encode; stderr is lenient from the start.
        sys.stdout.reconfigure(errors="backslashreplace")
    return _console(screen, is_stderr=False)


def notes_console(screen: Screen) -> Console:
    """Return the console for progress, warnings and errors: stderr."""
    return _console(screen, is_stderr=True)


def pipe_width(environment: Mapping[str, str]) -> int:
    """Return the width to use without a terminal: COLUMNS where it is a count, else 120."""
    columns = environment.get("COLUMNS", "")
    return int(columns) if columns.isdecimal() and int(columns) > 0 else PIPE_WIDTH


def say(console: Console, text: Text) -> None:
    """Print one message: wrapped at words on a terminal, one searchable line elsewhere.

    A message that nobody can read any more is dropped: a closed pipe or terminal must not end the work half-way.
    """
    with contextlib.suppress(OSError):
        console.print(text, soft_wrap=not console.is_terminal)


def _console(screen: Screen, *, is_stderr: bool) -> Console:
    is_terminal = (sys.stderr if is_stderr else sys.stdout).isatty()
    return _Console(
        stderr=is_stderr,
        # The 16 colours of the terminal's own theme; rich reads no variable that is decided here.
        color_system="standard" if screen.is_colored(is_terminal, os.environ) else None,
        no_color=False,
        force_terminal=is_terminal,
        width=None if is_terminal else pipe_width(os.environ),
        markup=False,
        highlight=False,
        emoji=False,
    )
