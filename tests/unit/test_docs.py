"""The generated pages are what the code says, and the README's commands exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from clusterctl.cli.main import COMMANDS
from tools.reference import DOCS, pages

README = (DOCS.parent / "README.md").read_text("utf-8")


@pytest.mark.parametrize("path", pages(), ids=lambda path: path.name)
def test_a_generated_page_is_up_to_date(path: Path) -> None:
    assert path.read_text("utf-8") == pages()[path], "run `python -m tools.reference`"


def test_the_readme_names_only_commands_that_exist_and_leaves_none_out() -> None:
    named = set(re.findall(r"^clusterctl (?:-r \S+ )?([a-z]+)", README, re.MULTILINE))
    assert named <= set(COMMANDS)
    assert all(re.search(rf"`{command}\b", README) for command in COMMANDS)


def test_every_page_of_the_navigation_exists() -> None:
    navigation = (DOCS.parent / "mkdocs.yml").read_text("utf-8")
    pages_named = re.findall(r": ([a-z/-]+\.md)$", navigation, re.MULTILINE)
    assert pages_named
    assert all((DOCS / page).is_file() for page in pages_named)
