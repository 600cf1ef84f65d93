"""A support bundle of this very machine, read back."""

from __future__ import annotations

import asyncio
import tarfile
from pathlib import Path

import pytest

from clusterctl.cluster.bundle import write_bundle
from tests.unit.cluster_samples import RECIPE, inventory, recipe

NODES = """
version: 1
cluster: bundle-test
nodes:
  - {name: here, role: head, connection: local, env: {FIRST_TOKEN: geheim, SECOND_TOKEN: geheim-lang}}
"""


def test_a_bundle_holds_no_secret_whatever_it_is_part_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    asked = recipe(
        RECIPE.replace("name: demo\n", "name: demo\nsource: https://example.org/geheim-lang/verborgen\n")
    )
    server = asked.server.model_copy(update={"extra_args": ("--api-key", "verborgen")})
    file = tmp_path / "bundle.tar.gz"
    asyncio.run(write_bundle(inventory(NODES), asked.model_copy(update={"server": server}), file, mask=False))
    with tarfile.open(file) as archive:
        members = [archive.extractfile(member) for member in archive.getmembers()]
        texts = [member.read().decode() for member in members if member]
    assert any("https://example.org/***/***" in text for text in texts)
    assert not any("geheim" in text or "-lang" in text or "verborgen" in text for text in texts)
