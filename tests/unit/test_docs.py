"""README, docs, `--help` and hints speak of one and the same program."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from clusterctl import errors
from clusterctl.cli.examples import EXAMPLES
from clusterctl.cli.main import COMMANDS, GLOBAL_OPTIONS, PROGRAM, cli
from tools.reference import DOCS, pages
from tools.screenshots.__main__ import IMAGES, pictures, words_of

ROOT = DOCS.parent
README = (ROOT / "README.md").read_text("utf-8")
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md"))]
SOURCES = [
    *sorted((ROOT / "clusterctl").rglob("*.py")),
    *sorted((ROOT / "clusterctl").rglob("*.yaml")),
    *sorted((ROOT / "recipes").glob("*.yaml")),
    *sorted((ROOT / "inventory").glob("*.yaml")),
]
QUOTED = re.compile(r"`(clusterctl [^`]+)`|\$\((clusterctl [^)]+)\)")
FENCED = re.compile(r"^```(?:sh|text)\n(.*?)^```", re.MULTILINE | re.DOTALL)
TYPED = re.compile(r"^(clusterctl .+)$", re.MULTILINE)
# Where the shell takes over, or a comment begins.
END = re.compile(r"[|>&]| #")
# What the reader or the program puts in: FILE, HOST…, {name}.
PLACEHOLDER = re.compile(r"\{|…|\b[A-Z]{3,}\b")


def command(name: str) -> click.Command:
    found = cli.get_command(click.Context(cli), name)
    assert found is not None
    return found


def options_of(name: str) -> set[str]:
    params = [*command(name).params, *GLOBAL_OPTIONS]
    return {flag for param in params for flag in (*param.opts, *param.secondary_opts)}


def command_lines() -> Iterator[str]:
    """Every call of the program that stands in a page, or in a hint of the program itself."""
    for page in PAGES:
        text = page.read_text("utf-8")
        for block in FENCED.findall(text):
            yield from TYPED.findall(block)
    yield from (line for examples in EXAMPLES.values() for line, _ in examples)
    for file in (*PAGES, *SOURCES):
        for quoted, substituted in QUOTED.findall(file.read_text("utf-8")):
            yield " ".join((quoted or substituted).split())


@pytest.mark.parametrize("path", pages(), ids=lambda path: path.name)
def test_a_generated_page_is_up_to_date(path: Path) -> None:
    assert path.read_text("utf-8") == pages()[path], "run `python -m tools.reference`"


def test_the_pictures_show_what_the_program_shows() -> None:
    drawn = {path: words_of(path.read_text("utf-8")) for path in sorted(IMAGES.iterdir())}
    assert all(len(words) > 20 for words in drawn.values())
    assert drawn == {path: words_of(p) for path, p in pictures().items()}, "run `python -m tools.screenshots`"


@pytest.mark.parametrize("line", sorted(set(command_lines())))
def test_a_command_line_that_is_written_down_is_one_that_the_program_takes(line: str) -> None:
    _, *words = shlex.split(END.split(line)[0])
    name = next((word for word in words if word in COMMANDS), None)
    assert name, "no command of the program is named"
    before, rest = words[: words.index(name)], words[words.index(name) + 1 :]
    try:
        click.Command(PROGRAM, params=list(GLOBAL_OPTIONS)).make_context(PROGRAM, before)
        command(name).make_context(name, rest)
    except (click.MissingParameter, click.BadOptionUsage):
        pass  # it speaks of the command or of the option, and calls nothing
    except click.BadParameter:
        assert PLACEHOLDER.search(line)


def test_enough_command_lines_are_found() -> None:
    assert {"clusterctl init desk strix1 strix2", "clusterctl plan --explain"} <= set(command_lines())


def test_every_command_shows_how_it_is_used() -> None:
    shown_in_its_text = {"completion"}
    assert set(EXAMPLES) == set(COMMANDS) - shown_in_its_text
    lines = [line for examples in EXAMPLES.values() for line, _ in examples]
    assert max(map(len, lines)) <= 56, "on a terminal of 60 columns it would be broken, and could not be copied"


def test_the_readme_leaves_no_command_out() -> None:
    assert all(re.search(rf"`{name}\b", README) for name in COMMANDS)


def test_the_readmes_table_names_only_commands_and_their_options() -> None:
    table = README.partition("| command | does |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| `([a-z]+)[^|]*\|(.*)\|$", table, re.MULTILINE)
    names = [name for name, _ in rows]
    assert set(names) <= set(COMMANDS)
    assert len(names) > len(COMMANDS) / 2
    for name, text in rows:
        assert set(re.findall(r"`(--?[a-z-]+)`", text)) <= options_of(name)


def exit_codes(kind: type[errors.ClusterctlError]) -> set[int]:
    return {kind.exit_code}.union(*map(exit_codes, kind.__subclasses__()))


def test_the_readme_tells_every_exit_code_and_no_help_tells_another() -> None:
    told = {int(code) for code in re.findall(r"^\| (\d+) \|", README, re.MULTILINE)}
    assert told == exit_codes(errors.ClusterctlError) | {0}
    for name in COMMANDS:
        _, _, codes = (command(name).help or "").partition("xit code")
        assert {int(code) for code in re.findall(r"(?:[:;(,]|codes?) (\d+)\b", codes)} <= told


def test_every_page_of_the_navigation_exists() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8")
    pages_named = re.findall(r": ([a-z/-]+\.md)$", navigation, re.MULTILINE)
    assert pages_named
    assert all((DOCS / page).is_file() for page in pages_named)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_to_a_file_leads_to_one(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text("utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []
