"""What pydantic found, as faults in plain words and at their place in the file."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from clusterctl.config.document import Document, Items, Location, Map, Value, fault_at, plain
from clusterctl.config.section import KeyFault
from clusterctl.errors import ConfigError, Fault

Model = TypeVar("Model", bound=BaseModel)

MAX_SHOWN = 60
KEY_OF_MAP = "[key]"
MUST_BE_MAP = "must be a map of `key: value` lines"
WORDS = {
    "dict_type": MUST_BE_MAP,
    "mapping_type": MUST_BE_MAP,
    "model_type": MUST_BE_MAP,
    "string_type": "must be text",
    "tuple_type": "must be a list",
    "too_short": "must not be empty",
}
"""pydantic's error types that a file can cause and whose words are fixed."""


def checked(model: type[Model], document: Document, rules: Iterable[Fault]) -> Model:
    """Return the value of a document; `rules` are the faults found by other checks than the model's own.

    Raises:
        ConfigError: all faults together, those met while reading included.
    """
    try:
        value = model.model_validate(plain(document.root))
        faults = []
    except ValidationError as error:
        value = None
        details = error.errors(include_url=False, include_input=False)
        causes = [detail for detail in details if not _is_consequence(detail, document)]
        faults = [_fault(detail, model, document) for detail in causes]
    faults = _told_once(document.faults, [*faults, *rules])
    if value is None or faults:
        raise ConfigError(faults, hint=f"`clusterctl schema {model.__name__.lower()}` describes every key")
    return value


def _told_once(reading: Iterable[Fault], checking: Iterable[Fault]) -> list[Fault]:
    """Return each fault once.

    A value that could not be read has no type yet, so nothing else is said of its place. A fault in
    `defaults` shows again in each node that inherits it; it is told as it was met first.
    """
    unread = {(fault.line, fault.column) for fault in reading}
    told: dict[tuple[int, int, str], Fault] = {}
    for fault in (*reading, *(fault for fault in checking if (fault.line, fault.column) not in unread)):
        told.setdefault((fault.line, fault.column, fault.message), fault)
    return list(told.values())


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean `x`?` for the known word that resembles `word`, else nothing."""
    close = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean `{close[0]}`?" if close else ""


def _is_consequence(detail: ErrorDetails, document: Document) -> bool:
    """Whether another fault is behind this one: pydantic counts only the items of a list that are valid, and
    leaves out a default that is made from a faulty key.
    """
    if detail["type"] == "too_short":
        return bool(plain(document.find(detail["loc"]).value))
    return detail["type"] == "default_factory_not_called"


def _fault(detail: ErrorDetails, model: type[BaseModel], document: Document) -> Fault:
    location, kind = detail["loc"], detail["type"]
    cause = detail.get("ctx", {}).get("error")
    if kind == "missing":
        return _missing_key(location, document)
    if kind == "extra_forbidden":
        return _unknown_key(location, model, document)
    if isinstance(cause, KeyFault):
        return document.fault((*location, cause.key), str(cause))
    if location[-1:] == (KEY_OF_MAP,):
        found = document.find(location[:-1])
        mark = found.key_mark or found.value.mark
        return fault_at(document.file, mark, found.location[:-1], f"key `{location[-2]}` {cause}")
    found = document.find(location)
    return document.fault(location, f"{_words(detail, found.value)} (got {_shown(found.value)})")


def _words(detail: ErrorDetails, value: Value) -> str:
    context = detail.get("ctx", {})
    if "error" in context:
        return str(context["error"])
    if "expected" in context:
        choices = re.findall(r"'([^']+)'", context["expected"])
        return f"must be one of {', '.join(choices)}" if choices else f"must be {context['expected']}"
    return WORDS.get(detail["type"], "is not valid here")


def _missing_key(location: Location, document: Document) -> Fault:
    if document.get(*location) is not None:
        return document.fault(location, "has no value")
    return document.fault(location[:-1], f"`{location[-1]}` is missing")


def _unknown_key(location: Location, model: type[BaseModel], document: Document) -> Fault:
    found = document.find(location)
    key, known = str(location[-1]), _known_keys(model, location[:-1])
    message = f"unknown key `{key}`" + (
        suggestion(key.lower().replace("-", "_"), known) or f"; known keys: {', '.join(known)}"
    )
    return fault_at(document.file, found.key_mark or found.value.mark, location[:-1], message)


def _known_keys(model: type[BaseModel], location: Location) -> list[str]:
    for part in location:
        field = _fields(model).get(str(part))
        model = (field and _section_in(field.annotation)) or model
    return list(_fields(model))


def _fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _section_in(annotation: object) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    arguments = getattr(annotation, "__args__", ())
    return next((section for section in map(_section_in, arguments) if section), None)


def _shown(value: Value) -> str:
    if isinstance(value, Map | Items):
        return "a map" if isinstance(value, Map) else "a list"
    if value.text is None:
        return "nothing"
    text = value.text if len(value.text) <= MAX_SHOWN else value.text[:MAX_SHOWN] + "…"
    shown = text if text and text == text.strip() else f'"{text}"'
    return shown if value.text == value.written else f"{shown} from {value.written[:MAX_SHOWN]}"
