"""YAML text → `Document`: positions kept, duplicate keys refused, variables filled in, bombs defused.

Only PyYAML's scanner, parser and composer are used; nothing is ever constructed from a tag.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import yaml

from clusterctl.config.document import Document, Entry, Items, Location, Map, Mark, Scalar, Value, fault_at
from clusterctl.config.interpolation import fill
from clusterctl.errors import ConfigError, Fault

MAX_DEPTH = 32
MAX_VALUES = 5_000
CORE_TAG = "tag:yaml.org,2002:"
NULL_TAG = f"{CORE_TAG}null"
MERGE_TAG = f"{CORE_TAG}merge"
KNOWN_TAGS = frozenset(
    CORE_TAG + name
    for name in ("bool", "float", "int", "map", "merge", "null", "seq", "str", "timestamp", "value")
)
TOO_DEEP = f"nested deeper than {MAX_DEPTH} levels"

BARE_VARIABLE = "inside `{ }` and `[ ]`, a variable must stand in quotes: '${VAR}'"
PROBLEMS = {
    "found character '\\t'": "a tab can't indent YAML; use spaces",
    "mapping values are not allowed": "`:` is not expected here; check the indentation, or quote the text",
    "could not find expected ':'": "expected `key: value`",
    "expected <block end>": "this does not fit what stands above; check the indentation and open brackets",
    "found unexpected end of stream": "a quote is opened and never closed",
    "but found another document": "only one YAML document per file; remove the `---`",
    "expected ',' or": "a `,` or the closing bracket is missing before this",
    "found undefined alias": "this alias has no anchor above it",
    "found duplicate anchor": "this anchor is already defined above",
    TOO_DEEP: TOO_DEEP,
}


class Composer(yaml.SafeLoader):
    """PyYAML's composer with a limit to nesting, which it would follow until Python's stack ends."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Compose one node, at most `MAX_DEPTH` below the root."""
        if self.depth > MAX_DEPTH:
            raise yaml.MarkedYAMLError(problem=TOO_DEEP, problem_mark=self.get_mark())
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


def read_document(text: str, file: str, environment: Mapping[str, str]) -> Document:
    """Return the document in `text`; faults that leave the rest readable are in its `faults`.

    Raises:
        ConfigError: the text is not YAML, not one document, not a map, or nested or repeated beyond reason.
    """
    root = _compose(text, file)
    if root is None:
        raise ConfigError([fault_at(file, Mark(1, 1), (), "the file is empty")])
    reader = _Reader(file, environment)
    value = reader.value(root, ())
    if not isinstance(value, Map):
        message = "the file must be a map of `key: value` lines"
        raise ConfigError([*reader.faults, fault_at(file, value.mark, (), message)])
    return Document(file, value, tuple(reader.faults))


def _compose(text: str, file: str) -> yaml.Node | None:
    try:
        loader = Composer(text)
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        mark = Mark(before.count("\n") + 1, len(before) - before.rfind("\n"))
        message = f"the character U+{ord(text[error.position]):04X} is not allowed in YAML"
        raise ConfigError([fault_at(file, mark, (), message)]) from error
    try:
        return loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        at = error.problem_mark or loader.get_mark()
        message = BARE_VARIABLE if _is_bare_variable(text, at.index) else _in_words(error.problem or "")
        raise ConfigError([fault_at(file, _mark(at), (), message)]) from error
    except (ValueError, OverflowError) as error:
        # PyYAML hands `"\UFFFFFFFF"` to chr(), and endless digits of a %YAML directive to int().
        message = "not valid YAML: a number or an escape is out of range"
        raise ConfigError([fault_at(file, _mark(loader.get_mark()), (), message)]) from error


def _is_bare_variable(text: str, brace: int) -> bool:
    return brace > 0 and text.startswith("${", brace - 1)


def _in_words(problem: str) -> str:
    words = (words for start, words in PROBLEMS.items() if problem.startswith(start))
    return next(words, f"not valid YAML: {problem}")


def _mark(mark: yaml.Mark) -> Mark:
    return Mark(mark.line + 1, mark.column + 1)


@dataclass
class _Reader:
    """Turns composed nodes into values; aliases are expanded here, so the values are counted here."""

    file: str
    environment: Mapping[str, str]
    faults: list[Fault] = field(default_factory=list)
    values: int = 0

    def value(self, node: yaml.Node, location: Location) -> Value:
        self.values += 1
        if self.values > MAX_VALUES:
            raise self.hopeless(node, f"more than {MAX_VALUES} values, counting what aliases repeat")
        if len(location) > MAX_DEPTH:
            raise self.hopeless(node, "an alias stands for something that contains it, or " + TOO_DEEP)
        if node.tag not in KNOWN_TAGS:
            self.note(node, location, f"tags such as `{node.tag}` have no meaning here; remove it")
        match node:
            case yaml.MappingNode():
                return self.map(node, location)
            case yaml.SequenceNode():
                items = tuple(self.value(item, (*location, at)) for at, item in enumerate(node.value))
                return Items(_mark(node.start_mark), items)
            case _:
                return self.scalar(node, location)

    def map(self, node: yaml.MappingNode, location: Location) -> Map:
        entries: dict[str, Entry] = {}
        inherited: list[Map] = []
        for key_node, value_node in node.value:
            if key_node.tag == MERGE_TAG:
                inherited += self.merged(value_node, (*location, "<<"))
            elif not isinstance(key_node, yaml.ScalarNode):
                self.note(key_node, location, "a key must be plain text")
            elif key_node.value in entries:
                key, first = key_node.value, entries[key_node.value].mark.line
                self.note(key_node, location, f"duplicate key `{key}`; the first is on line {first}")
            else:
                key = key_node.value
                entries[key] = Entry(_mark(key_node.start_mark), self.value(value_node, (*location, key)))
        for source in inherited:
            entries = {**source.entries, **entries}
        return Map(_mark(node.start_mark), entries)

    def merged(self, node: yaml.Node, location: Location) -> list[Map]:
        value = self.value(node, location)
        sources = value.values if isinstance(value, Items) else (value,)
        maps = [source for source in sources if isinstance(source, Map)]
        if len(maps) < len(sources):
            self.note(node, location, "must be a map or a list of maps")
        return maps

    def scalar(self, node: yaml.Node, location: Location) -> Scalar:
        mark, written = _mark(node.start_mark), str(node.value)
        if node.tag == NULL_TAG:
            return Scalar(mark, None, written)
        try:
            return Scalar(mark, _storable(fill(written, self.environment)), written)
        except ValueError as error:
            self.note(node, location, str(error))
            return Scalar(mark, written, written)

    def note(self, node: yaml.Node, location: Location, message: str) -> None:
        self.faults.append(fault_at(self.file, _mark(node.start_mark), location, message))

    def hopeless(self, node: yaml.Node, message: str) -> ConfigError:
        return ConfigError([fault_at(self.file, _mark(node.start_mark), (), message)])


def _storable(text: str) -> str:
    """Return `text` if an argument of a program could hold it."""
    if "\0" in text:
        raise ValueError("must not contain a NUL character")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError("must be valid Unicode")
    return text
