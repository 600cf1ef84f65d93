"""A YAML file as a tree of values that know where they stand, so that every fault can name its line.

Scalars stay text: what a value means is decided by the key it belongs to (`fields.py`), not by YAML's guess.
So `name: 123`, `flash_attention: on` and `HSA_OVERRIDE_GFX_VERSION: 11.0` keep what was written.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from clusterctl.errors import Fault
from clusterctl.escaping import escaped

Location = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """A position in the file; line and column count from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Scalar:
    """One value: its text with variables filled in (`None` for YAML's null), and the text as written."""

    mark: Mark
    text: str | None
    written: str


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    mark: Mark
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """A value under a key; `mark` is the key's."""

    mark: Mark
    value: Value


@dataclass(frozen=True, slots=True)
class Map:
    """A map from keys to entries, in the order of the file."""

    mark: Mark
    entries: Mapping[str, Entry]


Value = Scalar | Items | Map
Plain = None | str | list["Plain"] | dict[str, "Plain"]


@dataclass(frozen=True, slots=True)
class Found:
    """Where a location leads: the part of it that exists, its value, and its key's mark if it has a key."""

    location: Location
    value: Value
    key_mark: Mark | None


@dataclass(frozen=True, slots=True)
class Document:
    """A file that was read: its root, and the faults met while reading."""

    file: str
    root: Map
    faults: tuple[Fault, ...] = ()

    def find(self, location: Location) -> Found:
        """Follow `location` as far as it exists; parts that don't exist are passed over."""
        found = Found((), self.root, None)
        for part in location:
            match found.value, part:
                case Map(entries=entries), str() if part in entries:
                    entry = entries[part]
                    found = Found((*found.location, part), entry.value, entry.mark)
                case Items(values=values), int() if part < len(values):
                    found = Found((*found.location, part), values[part], None)
        return found

    def get(self, *location: str | int) -> Value | None:
        """Return the value at exactly this location, `None` where there is none."""
        found = self.find(location)
        return found.value if found.location == location else None

    def text(self, *location: str | int) -> str | None:
        """Return the text of the scalar at exactly this location, `None` where there is none."""
        value = self.get(*location)
        return value.text if isinstance(value, Scalar) else None

    def fault(self, location: Location, message: str) -> Fault:
        """Return a fault at the value of `location`, or at the nearest value around it."""
        found = self.find(location)
        return fault_at(self.file, found.value.mark, found.location, message)


def fault_at(file: str, mark: Mark, location: Location, message: str) -> Fault:
    """Return a fault whose texts can't do anything to a terminal."""
    return Fault(escaped(file), mark.line, mark.column, escaped(dotted(location)), escaped(message))


def dotted(location: Location) -> str:
    """Return a location as people write it: `nodes[1].rpc.port`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).removeprefix(".")


def plain(value: Value) -> Plain:
    """Return the value as dicts, lists, texts and `None`."""
    match value:
        case Scalar(text=text):
            return text
        case Items(values=values):
            return [plain(item) for item in values]
        case Map(entries=entries):
            return {key: plain(entry.value) for key, entry in entries.items()}


def merge(base: Map, over: Map, *, without: Collection[str] = ()) -> Map:
    """Return `over` with what it lacks taken from `base`, except the keys `without`.

    Maps merge deep; any other value of `over`, a list or a null too, replaces that of `base`.
    """
    entries = {key: entry for key, entry in base.entries.items() if key not in without}
    for key, entry in over.entries.items():
        inherited = entries.get(key)
        if inherited and isinstance(inherited.value, Map) and isinstance(entry.value, Map):
            entries[key] = replace(entry, value=merge(inherited.value, entry.value))
        else:
            entries[key] = entry
    return Map(over.mark, entries)
