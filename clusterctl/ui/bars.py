"""Memory bars: one per device, its budget as the full length, every part with a sign of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.text import Text

LEAST_WIDTH, MOST_WIDTH = 12, 60


@dataclass(frozen=True, slots=True)
class Part:
    """A kind of memory and how it looks with and without Unicode."""

    name: str
    symbol: str
    ascii: str
    style: str


PARTS = (
    Part("weights", "█", "#", "blue"),
    Part("KV cache", "▓", "=", "magenta"),
    Part("compute", "▒", "+", "yellow"),
    Part("free", "·", ".", "dim"),
)


@dataclass(frozen=True, slots=True)
class Bar:
    """The sizes of `PARTS` as one line; any unit."""

    sizes: tuple[float, float, float, float]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        widths = part_widths(self.sizes, max(len(PARTS), min(options.max_width, MOST_WIDTH)))
        yield Text.assemble(
            *((_symbol(part, options) * width, part.style) for part, width in zip(PARTS, widths, strict=True))
        )

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(min(LEAST_WIDTH, options.max_width), min(MOST_WIDTH, options.max_width))


class Legend:
    """What the signs of a bar mean."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        signs = ((_symbol(part, options), part) for part in PARTS)
        yield Text("  ").join(Text.assemble((symbol, part.style), f" {part.name}") for symbol, part in signs)


def part_widths(sizes: Sequence[float], width: int) -> tuple[int, ...]:
    """Share `width` columns, at least one per size, in proportion: whatever is above zero is seen.

    The widths add up to `width`, unless every size is zero.
    """
    positive = [max(size, 0.0) for size in sizes]
    total = sum(positive)
    if total == 0:
        return (0,) * len(positive)
    seen = [int(size > 0) for size in positive]
    spare = width - sum(seen)
    edges = [round(spare * edge / total) for edge in accumulate(positive, initial=0.0)]
    return tuple(one + right - left for one, (left, right) in zip(seen, pairwise(edges), strict=True))


def _symbol(part: Part, options: ConsoleOptions) -> str:
    return part.ascii if options.ascii_only else part.symbol
