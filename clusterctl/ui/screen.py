"""What the user wants to see: the global options that concern output. Knows no rich, so it loads at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Color(StrEnum):
    """When to colour: on a capable terminal (auto), always, or never."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Screen:
    """Output settings. `quiet` leaves the result, and failures of the progress; `verbosity` counts the `-v`.

    `program` is how the next command is to be called, so that it means the same cluster.
    """

    color: Color = Color.AUTO
    no_progress: bool = False
    verbosity: int = 0
    quiet: bool = False
    program: tuple[str, ...] = ("clusterctl",)

    def is_colored(self, is_terminal: bool, environment: Mapping[str, str]) -> bool:
        """Whether a stream gets colour: `--color` first, then NO_COLOR, then FORCE_COLOR, then the terminal.

        Both variables count when they hold anything at all (no-color.org, force-color.org).
        """
        if self.color != Color.AUTO:
            return self.color == Color.ALWAYS
        if environment.get("NO_COLOR"):
            return False
        if environment.get("FORCE_COLOR"):
            return True
        return is_terminal and environment.get("TERM") not in ("dumb", "unknown")
