"""What several unit tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli_program import FOREIGN_VARIABLES, Cli


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """The program, with an empty home directory."""
    for name in FOREIGN_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return Cli(monkeypatch, capsys)
