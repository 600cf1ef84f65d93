"""The options of a llama.cpp program, read from its own `--help`, and how a setting is spelled with them.

Options come, go and change their form between builds (`--flash-attn` took no value until b6325, `--no-mmap`
became `--load-mode none`), so no build number is trusted here: the program's own words decide. The spellings
are data, in flags.yaml.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any

from clusterctl.data import read_data
from clusterctl.errors import UsageError
from clusterctl.llama.text import plain_lines

SERVER = "llama-server"
WORKER = "ggml-rpc-server"
BENCH = "llama-bench"

_OPTION_LINE = re.compile(r" {0,2}-{1,2}[A-Za-z]")
_GAP = re.compile(r"(?<![,\s])\s{2,}")
_NEXT_NAME = re.compile(r",\s+(?=-)")
_LISTED = re.compile(r"^[\[{<](?P<words>[^\[\]{}<>]+)[\]}>]$")
_WORD = re.compile(r"[a-z0-9][a-z0-9_+-]*")
_ALLOWED_VALUES = re.compile(r"allowed values: ((?:[\w+-]+,\s+)*[\w+-]+)")
_BULLET = re.compile(r"^- ([a-z0-9_+-]+)(?: \(default\))?:", re.MULTILINE)


class UnknownSetting(UsageError):
    """A setting that this build of llama.cpp has no option for."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option: whether it takes a value, and which (none listed: any)."""

    takes_value: bool
    choices: tuple[str, ...] = ()
    deprecated: bool = False

    def accepts(self, value: str) -> bool:
        """Whether a listed value, or any if none is listed."""
        return self.takes_value and (not self.choices or value in self.choices)


@dataclass(frozen=True, slots=True)
class Flags:
    """All option spellings that a program knows, short and long."""

    program: str
    options: Mapping[str, Option]

    def __contains__(self, spelling: object) -> bool:
        return spelling in self.options


@lru_cache(maxsize=4)
def parse_help(text: str) -> Flags | None:
    """Read `llama-server --help`; `None` if the text is anything else. Most nodes say the same."""
    flags = Flags(SERVER, MappingProxyType(dict(_options(text))))
    return flags if "--model" in flags and "--ctx-size" in flags else None


def parse_worker_usage(text: str) -> Flags | None:
    """Read the usage of `ggml-rpc-server` (or `rpc-server`); `None` if the text is anything else."""
    flags = Flags(WORKER, MappingProxyType(dict(_options(text))))
    return flags if "--host" in flags and "--port" in flags and "--model" not in flags else None


def parse_bench_usage(text: str) -> Flags | None:
    """Read the usage of `llama-bench`; `None` if the text is anything else."""
    # A long list of values leaves a single blank before the default.
    flags = Flags(BENCH, MappingProxyType(dict(_options(text.replace("> (default", ">  (default")))))
    return flags if "--n-prompt" in flags and "--tensor-split" in flags else None


def needed_options(flags: Flags) -> dict[str, Option]:
    """Return the options of a program that any setting may be spelled with: all that `spell` looks at."""
    forms = (form for forms in _data()[flags.program].values() for form in forms)
    names = {name for form in forms for name in (*form["argv"][:1], form.get("needs"))}
    return {name: option for name, option in flags.options.items() if name in names}


def spell(flags: Flags, wanted: Mapping[str, str | int | bool]) -> tuple[str, ...]:
    """Return the arguments for the wanted settings, in the order in which llama.cpp must get them.

    Settings are named in flags.yaml. One that the build follows without being told is left out.

    Raises:
        UnknownSetting: if the build has no option for a setting, or not for this value.
    """
    vocabulary = _data()[flags.program]
    if strange := wanted.keys() - vocabulary.keys():
        raise UnknownSetting(f"{flags.program} has no setting {', '.join(sorted(strange))}")
    return tuple(
        argument
        for setting, forms in vocabulary.items()
        if setting in wanted
        for argument in _spell_one(flags, setting, forms, _as_text(wanted[setting]))
    )


def unknown_options(flags: Flags, argv: Sequence[str]) -> Iterator[str]:
    """Yield what stands in `argv` as an option that the program does not have; values are passed over."""
    words = iter(argv)
    for word in words:
        option = flags.options.get(word)
        if option is None and _OPTION_LINE.match(word):
            yield word
        elif option is not None and option.takes_value:
            next(words, None)


def _options(text: str) -> Iterator[tuple[str, Option]]:
    for head, description in _entries(text):
        words = " ".join(description.split())
        if "the argument has been removed" in words:
            continue
        parts = [part.split(maxsplit=1) for part in _NEXT_NAME.split(head)]
        value = next((part[1] for part in parts if len(part) > 1), None)
        choices = () if value is None else _choices(value, description)
        option = Option(value is not None, choices, "DEPRECATED" in words)
        yield from ((part[0], option) for part in parts)


def _entries(text: str) -> Iterator[tuple[str, str]]:
    """Yield each option's names with its value, and its description over all its lines."""
    head, description = "", [""]
    for line in plain_lines(text):
        if _OPTION_LINE.match(line):
            if head:
                yield head, "\n".join(description)
            head, *description = _GAP.split(line.strip(), maxsplit=1)
        else:
            description.append(line.strip())
    if head:
        yield head, "\n".join(description)


def _choices(value: str, description: str) -> tuple[str, ...]:
    listed = _LISTED.match(value)
    words = re.split(r"[|,]", listed["words"] if listed else value)
    if len(words) > 1 and all(_WORD.fullmatch(word) for word in words):
        return tuple(words)
    if allowed := _ALLOWED_VALUES.search(description):
        return tuple(re.split(r",\s+", allowed[1]))
    return tuple(_BULLET.findall(description))


def _spell_one(flags: Flags, setting: str, forms: Sequence[Mapping[str, Any]], value: str) -> tuple[str, ...]:
    meant = [form for form in forms if form.get("value", value) == value]
    fitting = [form for form in meant if _fits(flags, form, value)]
    if not fitting:
        raise _unknown(flags, setting, value, [form["argv"][0] for form in meant if form["argv"]])
    best = min(fitting, key=lambda form: (not form["argv"], _is_deprecated(flags, form)))
    return tuple(argument.replace("{value}", value) for argument in best["argv"])


def _fits(flags: Flags, form: Mapping[str, Any], value: str) -> bool:
    if "needs" in form and form["needs"] not in flags:
        return False
    if not form["argv"]:
        return True
    option = flags.options.get(form["argv"][0])
    if option is None:
        return False
    if flags.program == WORKER:  # usages of old workers don't show which options take a value
        return True
    if len(form["argv"]) == 1:
        return not option.takes_value
    passed = form["argv"][1].replace("{value}", value)
    return option.accepts(passed) and (passed in option.choices or not form.get("listed"))


def _is_deprecated(flags: Flags, form: Mapping[str, Any]) -> bool:
    return any(flags.options[name].deprecated for name in form["argv"][:1])


def _unknown(flags: Flags, setting: str, value: str, missing: Sequence[str]) -> UnknownSetting:
    builds = _data()["builds"]
    known = [f"{option} is known {_range(builds[option])}" for option in missing if option in builds]
    if listed := [name for name in missing if name in flags and flags.options[name].choices]:
        known = [f"{name} takes {', '.join(flags.options[name].choices)}" for name in listed]
    needs = f": it lacks {' and '.join(missing)}" if missing and not listed else ""
    return UnknownSetting(
        f"this build of {flags.program} can't be told `{setting}` = `{value}`{needs}",
        hint="; ".join(known) or f"use another build, or another value of `{setting}`",
    )


def _range(builds: Mapping[str, int]) -> str:
    since = f"from b{builds['since']} on" if "since" in builds else ""
    gone = f"before b{builds['gone']}" if "gone" in builds else ""
    return " and ".join(part for part in (since, gone) if part)


def _as_text(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@cache
def _data() -> dict[str, Any]:
    return read_data("clusterctl.llama", "flags.yaml")
