"""Fill `${VAR}` and `${VAR:-default}` in the text of one YAML scalar."""

from __future__ import annotations

import re
from collections.abc import Mapping

REFERENCE = re.compile(
    r"(?P<escaped>\$\$\{)"
    r"|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<fallback>:-(?P<default>[^{}]*))?\}"
    r"|(?P<malformed>\$\{[^}]*\}?)"
)


def fill(text: str, environment: Mapping[str, str]) -> str:
    """Return `text` with its variables filled in; `$${` stands for a literal `${`.

    As in a shell, the default of `${VAR:-default}` also replaces an empty variable. What was filled in is not
    searched again.

    Raises:
        ValueError: in words for the user, when a variable is not set or a reference can't be read.
    """

    def value_of(reference: re.Match[str]) -> str:
        if reference["escaped"]:
            return "${"
        if reference["malformed"]:
            raise ValueError(
                f"`{reference['malformed']}` can't be read; write ${{VAR}} or ${{VAR:-default}}, "
                "or $${ for a literal ${"
            )
        name = reference["name"]
        if reference["fallback"]:
            return environment.get(name) or reference["default"]
        if name not in environment:
            raise ValueError(
                f"the environment variable `{name}` is not set; set it, or write ${{{name}:-default}}"
            )
        return environment[name]

    return REFERENCE.sub(value_of, text)
