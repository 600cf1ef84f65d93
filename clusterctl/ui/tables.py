"""Tables that need no colour, no lines and no wide screen to be read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from clusterctl.ui.safe import one_line

GAP = 2


def outside(text: str, style: str = "") -> Text:
    """Return text from a node or a file: harmless, on one line, and no markup in it is obeyed."""
    return Text(one_line(text), style=style)


def stacked(lines: Iterable[str]) -> Text:
    """Return a cell of several lines from a node or a file, `-` for none."""
    return Text("\n").join(map(outside, lines)) or Text("-")


def indented(renderable: RenderableType, columns: int = 2) -> Padding:
    """Return what is given, moved to the right."""
    return Padding.indent(renderable, columns)


@dataclass(frozen=True, slots=True)
class Column:
    """A heading. A number stands at the right and is never broken; a whole cell only where all else is."""

    heading: str
    is_number: bool = False
    is_whole: bool = False


@dataclass(frozen=True, slots=True)
class Grid:
    """Rows under headings; where the screen is too narrow for that, one block of lines per row.

    Columns shrink to their longest word, the widest first, and never break a word.
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[Text, ...], ...]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        widths = self._widths(options.max_width - GAP * (len(self.columns) - 1))
        yield from self._blocks() if widths is None else [self._table(widths)]

    def _widths(self, available: int) -> list[int] | None:
        natural = self._measure([True for _ in self.columns])
        keeping_whole = self._measure([column.is_number or column.is_whole for column in self.columns])
        keeping_words = self._measure([column.is_number for column in self.columns])
        for least in (keeping_whole, keeping_words):
            if sum(least) <= available:
                return _shrink(natural, least, available)
        return None

    def _measure(self, by_line: Sequence[bool]) -> list[int]:
        """The columns' widths, each by its longest line or else its longest word."""
        return [
            max(
                (_longest_line if is_line else _longest_word)(text)
                for text in (column.heading, *(row[index].plain for row in self.rows))
            )
            for index, (column, is_line) in enumerate(zip(self.columns, by_line, strict=True))
        ]

    def _table(self, widths: Sequence[int]) -> Table:
        table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
        for column, width in zip(self.columns, widths, strict=True):
            justify: JustifyMethod = "right" if column.is_number else "left"
            table.add_column(column.heading, width=width, justify=justify, overflow="fold")
        for row in self.rows:
            table.add_row(*row)
        return table

    def _blocks(self) -> Iterable[RenderableType]:
        for first, *others in self.rows:
            yield first
            block = Table.grid(padding=(0, GAP, 0, 0))
            block.add_column(style="dim", no_wrap=True)
            block.add_column(overflow="fold")
            for column, cell in zip(self.columns[1:], others, strict=True):
                block.add_row(column.heading, cell)
            yield indented(block)


def _longest_line(text: str) -> int:
    return max(map(cell_len, text.split("\n")))


def _longest_word(text: str) -> int:
    return max(map(cell_len, text.split()), default=0)


def _shrink(natural: Sequence[int], least: Sequence[int], available: int) -> list[int]:
    widths = [min(width, available) for width in natural]
    while sum(widths) > available:
        shrinkable = [index for index, width in enumerate(widths) if width > least[index]]
        widths[max(shrinkable, key=lambda index: widths[index])] -= 1
    return widths
