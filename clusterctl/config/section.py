"""What all maps of an inventory or a recipe share."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, model_validator


class Section(BaseModel):
    """A map of the file: frozen, without unknown keys. A key with nothing after it counts as left out."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    @model_validator(mode="before")
    @classmethod
    def _leave_out_empty_keys(cls, given: object) -> object:
        if not isinstance(given, Mapping):
            return given
        return {key: value for key, value in given.items() if value is not None}


class KeyFault(ValueError):
    """A fault of one key that shows only beside the other keys of its section."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key
