"""Values of any kind as plain JSON, with every text in them rewritten on the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass

from pydantic import BaseModel

Rewrite = Callable[[str], str]


def plain(value: object, rewrite: Rewrite) -> object:
    """Return what `json.dumps` takes. The names of fields are ours and stay as they are."""
    if value is None or isinstance(value, int | float):
        return value
    if (named := _fields(value)) is not None:
        return {name: plain(each, rewrite) for name, each in named.items()}
    if isinstance(value, Mapping):
        return {rewrite(str(key)): plain(each, rewrite) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each, rewrite) for each in value]
    return rewrite(str(value))


def _fields(value: object) -> Mapping[str, object] | None:
    if isinstance(value, BaseModel):
        return {name: getattr(value, name) for name in type(value).model_fields}
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return None
