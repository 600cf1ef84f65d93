"""The example of the documentation, run as it stands there."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import clusterctl
from tests.lab.conftest import MakeLab
from tests.lab.lab import NodeSpec
from tests.lab.operator import operator_of

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "python.md"


def test_the_example_brings_a_cluster_up_and_takes_it_down(make_lab: MakeLab, tmp_path: Path) -> None:
    lab = make_lab([NodeSpec("head", models=True), NodeSpec("worker")])
    example = re.search(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert example is not None
    script = tmp_path / "example.py"
    script.write_text(example[1], "utf-8")
    operator = operator_of(lab, tmp_path, workers=["worker"])
    files = {"inventory.json": operator.inventory, "recipe.json": operator.recipe}
    for name, document in files.items():
        (tmp_path / name).write_text(json.dumps(document), "utf-8")
    done = subprocess.run(
        [sys.executable, str(script), *(str(tmp_path / name) for name in files)],
        env=lab.environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("tensor split 31\n")
    assert "up at http://127.0.0.1:8080" in done.stdout
    assert done.stdout.endswith("left behind: {}\n")


def test_every_public_name_can_be_imported() -> None:
    assert all(getattr(clusterctl, name) is not None for name in clusterctl.__all__)
