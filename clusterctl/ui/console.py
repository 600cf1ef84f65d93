"""The two streams: `data` is what was asked for (stdout), `notes` is everything else (stderr)."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Mapping

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.segment import Segment
from rich.text import Text

from clusterctl.ui.screen import Screen

# No line is as long: what is wrapped can't be searched, so nothing is, unless COLUMNS asks for it.
PIPE_WIDTH = 1_000_000


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
    console = _console(screen, is_stderr=False)
    if not console.is_terminal:
        console.push_render_hook(_WithoutPadding())
    return console


def notes_console(screen: Screen) -> Console:
    """Return the console for progress, warnings and errors: stderr."""
    return _console(screen, is_stderr=True)


def pipe_width(environment: Mapping[str, str]) -> int:
    """Return the width to use without a terminal: COLUMNS where it is a count, else wide enough for any line."""
    columns = environment.get("COLUMNS", "")
    return int(columns) if columns.isdecimal() and int(columns) > 0 else PIPE_WIDTH


def say(console: Console, text: Text) -> None:
    """Print one message: wrapped at words on a terminal, one searchable line elsewhere.

    A message that nobody can read any more is dropped: a closed pipe or terminal must not end the work half-way.
    """
    with contextlib.suppress(OSError):
        console.print(text, soft_wrap=not console.is_terminal)


class _Unpadded:
    """Leaves out the blanks that rich sets behind a line to fill its column."""

    def __init__(self, renderable: ConsoleRenderable) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in Segment.split_lines(console.render(self._renderable, options)):
            while line and not line[-1].text.rstrip(" "):
                line.pop()
            if line:
                line[-1] = Segment(line[-1].text.rstrip(" "), line[-1].style)
            yield from (*line, Segment.line())


class _WithoutPadding(RenderHook):
    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Unpadded(renderable) for renderable in renderables]


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
