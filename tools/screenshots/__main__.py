"""Draws docs/images/*.svg: what the program shows of reports that a real cluster has given.

    python -m tools.screenshots

`recorded/` holds answers of a head and two workers on one machine, one of which had another build at first. The
plan is made from the facts of a published experiment. A test compares the pictures with what is shown now.
"""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from rich.console import Console
from rich.text import Text

from clusterctl.cli.main import run
from clusterctl.model import Step
from clusterctl.reports import ActionReport, CheckReport, StatusReport
from clusterctl.ui.action import show_action
from clusterctl.ui.check import show_check
from clusterctl.ui.progress import Progress
from clusterctl.ui.screen import Color, Screen
from clusterctl.ui.status import show_status

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
RECORDED = Path(__file__).parent / "recorded"
COLUMNS = 100
SCREEN = Screen(Color.ALWAYS)
FACTS = "recipes/facts/mixed-pool-llama-3.3-70b.json"
PLAN = ("-i", "inventory/mixed-pool.yaml", "-r", "recipes/mixed-pool-llama-3.3-70b.yaml", "--color", "always")


def main() -> None:
    """Write the pictures."""
    IMAGES.mkdir(exist_ok=True)
    for path, picture in pictures().items():
        path.write_text(picture, "utf-8")


def pictures() -> dict[Path, str]:
    """Every picture, by its file."""
    shows: Mapping[str, Callable[[], object]] = {
        "check": partial(show_check, SCREEN, _recorded("check", CheckReport)),
        "plan": partial(run, [*PLAN, "plan", "--facts", FACTS]),
        "up": _bring_up,
        "status": partial(show_status, SCREEN, _recorded("status", StatusReport)),
    }
    return {IMAGES / f"{name}.svg": _picture(name, _shown(show)) for name, show in shows.items()}


def words_of(picture: str) -> list[str]:
    """The text in a picture, whatever it looks like."""
    return re.findall(r"<text[^>]*>(.*?)</text>", picture)


def _bring_up() -> None:
    document = json.loads((RECORDED / "up.json").read_text("utf-8"))
    with Progress(SCREEN) as progress:
        for step in TypeAdapter(list[Step]).validate_python(document["steps"]):
            progress(step)
    show_action(SCREEN, TypeAdapter(ActionReport).validate_python(document["report"]))


def _recorded(name: str, kind: type[Any]) -> Any:  # noqa: ANN401 -- of the kind that is asked for
    return TypeAdapter(kind).validate_json((RECORDED / f"{name}.json").read_bytes())


def _shown(show: Callable[[], object]) -> str:
    """What is written to both streams, with its colours."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with chdir(ROOT), _columns(), redirect_stdout(stream), redirect_stderr(stream):
        show()
    stream.seek(0)
    return stream.read()


@contextmanager
def _columns() -> Iterator[None]:
    """The width that is used without a terminal."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(COLUMNS)
    try:
        yield
    finally:
        os.environ.pop("COLUMNS")
        os.environ.update({"COLUMNS": before} if before else {})


def _picture(name: str, shown: str) -> str:
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), color_system="standard", force_terminal=True)
    console.print(Text.assemble(("$ ", "dim"), (f"clusterctl {name}", "bold")))
    console.print(Text.from_ansi(shown))
    picture = console.export_svg(title="clusterctl", unique_id=name)
    # The reader's own font will do; nothing is to be fetched from elsewhere.
    return re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)


if __name__ == "__main__":
    main()
