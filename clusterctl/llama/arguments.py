"""What a user may not tell llama-server beside the plan, and why. Pure.

The names and the reasons are data, in arguments.yaml.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from clusterctl.data import read_data


@dataclass(frozen=True, slots=True)
class _Refused:
    """Why options are refused, and why environment variables are, each by name; and the options of secrets."""

    options: Mapping[str, str]
    variables: Mapping[str, str]
    secret_options: frozenset[str]


def option_of(argument: str) -> str:
    """Return the option that an argument names, as llama.cpp reads it: `_` in a long name is `-`."""
    name = argument.partition("=")[0]
    return name.replace("_", "-") if name.startswith("--") else name


def argument_refusal(argument: str) -> str | None:
    """Return why a user must not pass this argument; `None` if nothing speaks against it."""
    return _refused().options.get(option_of(argument))


def variable_refusal(name: str) -> str | None:
    """Return why a user must not set this environment variable; `None` if nothing speaks against it."""
    return _refused().variables.get(name)


def secrets_in(arguments: Sequence[str]) -> set[str]:
    """Return the secrets that stand in a call of llama-server; one argument may hold several."""
    found: set[str] = set()
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=False):
        if option_of(argument) in _refused().secret_options:
            _, has_value, value = argument.partition("=")
            found.update((value if has_value else following).split(","))
    return found - {""}


@cache
def _refused() -> _Refused:
    rules = read_data("clusterctl.llama", "arguments.yaml")["refused"]
    return _Refused(
        options={option: rule["why"] for rule in rules for option in rule.get("options", ())},
        variables={variable: rule["why"] for rule in rules for variable in rule.get("variables", ())},
        secret_options=frozenset(option for rule in rules if rule.get("secret") for option in rule["options"]),
    )
