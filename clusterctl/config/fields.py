"""Types of single values. Each takes the text of a scalar, or the value itself, and says what it must be."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, WithJsonSchema
from pydantic_core import core_schema

INT32_MAX = 2**31 - 1
WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,17})")
DECIMAL = re.compile(r"-?([0-9]{1,30}(\.[0-9]{0,30})?|\.[0-9]{1,30})([eE][+-]?[0-9]{1,3})?")
TRUTH = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}

JsonSchema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number within bounds; llama.cpp keeps its own in 32 bits."""

    minimum: int
    maximum: int = INT32_MAX

    def __get_pydantic_core_schema__(self, _source: object, _handler: object) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(self.parse)

    def __get_pydantic_json_schema__(self, _schema: object, _handler: object) -> JsonSchema:
        return {"type": "integer", "minimum": self.minimum, "maximum": self.maximum}

    def parse(self, given: object) -> int:
        """Return the number, or raise `ValueError` with what it must be."""
        number = int(given) if isinstance(given, str) and WHOLE.fullmatch(given) else given
        if not isinstance(number, int) or isinstance(number, bool):
            raise ValueError("must be a whole number")
        if not self.minimum <= number <= self.maximum:
            raise ValueError(f"must be {self.minimum}..{self.maximum}")
        return number


class Positive:
    """A number above zero."""

    def __get_pydantic_core_schema__(self, _source: object, _handler: object) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(self.parse)

    def __get_pydantic_json_schema__(self, _schema: object, _handler: object) -> JsonSchema:
        return {"type": "number", "exclusiveMinimum": 0}

    def parse(self, given: object) -> float:
        """Return the number, or raise `ValueError` with what it must be."""
        number = float(given) if isinstance(given, str) and DECIMAL.fullmatch(given) else given
        if not isinstance(number, int | float) or isinstance(number, bool):
            raise ValueError("must be a number")
        if not (math.isfinite(number) and number > 0):
            raise ValueError("must be a number above 0")
        return float(number)


@dataclass(frozen=True, slots=True)
class Text:
    """Text that matches a pattern as a whole; `must` says in words what the pattern wants."""

    pattern: str
    must: str

    def __get_pydantic_core_schema__(self, _source: object, _handler: object) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(self.parse)

    def __get_pydantic_json_schema__(self, _schema: object, _handler: object) -> JsonSchema:
        return {"type": "string", "pattern": f"^({self.pattern})$"}

    def parse(self, given: object) -> str:
        """Return the text, or raise `ValueError` with what it must be."""
        if not isinstance(given, str):
            raise ValueError("must be text")
        if not re.fullmatch(self.pattern, given):
            raise ValueError(f"must be {self.must}" if given else "must not be empty")
        return given


def _truth(given: object) -> bool:
    known = TRUTH.get(given.lower()) if isinstance(given, str) else given
    if not isinstance(known, bool):
        raise ValueError("must be true or false")
    return known


CONTROL = r"\u0000-\u001f\u007f-\u009f\u2028\u2029"
WORD = rf"[^\s{CONTROL}]"
NODE = r"[a-z0-9][a-z0-9-]{0,62}"
DEVICE = r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,63}"
HASH = r"[0-9a-f]{7,40}"

Version = Annotated[Literal[1], BeforeValidator(Whole(1).parse)]
Port = Annotated[int, Whole(1, 65535)]
Count = Annotated[int, Whole(1)]
CountOrZero = Annotated[int, Whole(0)]
PositiveNumber = Annotated[float, Positive()]
Truth = Annotated[bool, BeforeValidator(_truth)]

AnyText = Annotated[str, Text(r"[\s\S]*", "text"), WithJsonSchema({"type": ["string", "number", "boolean"]})]
Line = Annotated[str, Text(rf"[^{CONTROL}]+", "one line of text without control characters")]
Path = Annotated[str, Text(rf"~?/[^{CONTROL}]*", "an absolute path, or begin with `~/`, on one line")]
User = Annotated[str, Text(rf"(?!-){WORD}+", "a user name without spaces, not beginning with `-`")]

ClusterName = Annotated[
    str, Text(r"[a-z0-9][a-z0-9-]{0,31}", "1 to 32 of a-z, 0-9 and `-`, beginning with a letter or a digit")
]
NodeName = Annotated[str, Text(NODE, "1 to 63 of a-z, 0-9 and `-`, beginning with a letter or a digit")]
DeviceName = Annotated[str, Text(DEVICE, "a device as llama.cpp lists it, such as CUDA0")]
ShareName = Annotated[
    str, Text(rf"{NODE}(/{DEVICE})?", "the name of a node, or of its device written `node/device`")
]
RecipeName = Annotated[str, Text(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", "1 to 64 letters, digits, `.`, `_` or `-`")]
VariableName = Annotated[str, Text(r"[A-Za-z_][A-Za-z0-9_]*", "the name of an environment variable")]
Interface = Annotated[
    str, Text(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}", "the name of a network interface such as eth0 or usb4")
]
Build = Annotated[
    str,
    Text(
        rf"b?[0-9]{{1,6}}(-{HASH})?|{HASH}|v?[0-9]+[.][0-9]+[.][0-9]+(-[0-9a-z.]+)?",
        "a release tag such as b11434, a commit of 7 to 40 digits 0-9 a-f, or a version such as 0.6.0",
    ),
]
