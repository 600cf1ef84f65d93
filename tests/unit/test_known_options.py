"""Options of programs kept on this machine, and what a loss of power may make of the files."""

from __future__ import annotations

from pathlib import Path

import pytest

from clusterctl.cluster.known_options import (
    keep_options,
    known_fingerprints,
    known_options,
    known_options_directory,
)

FINGERPRINT = "1234-5678"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_what_is_kept_is_known() -> None:
    keep_options(FINGERPRINT, "usage: …")
    assert known_fingerprints() == (FINGERPRINT,)
    assert known_options(FINGERPRINT) == "usage: …"


def test_what_a_script_printed_is_not_kept_for_what_it_runs_may_change_behind_it() -> None:
    keep_options(f"script-{FINGERPRINT}", "usage: …")
    assert known_fingerprints() == ()
    assert known_options(f"script-{FINGERPRINT}") is None


@pytest.mark.parametrize("damage", [b"usage: \xff\xfe", b"", b"usage\0\0\0\0"])
def test_what_is_damaged_is_asked_for_again(damage: bytes) -> None:
    keep_options(FINGERPRINT, "usage")
    (known_options_directory() / FINGERPRINT).write_bytes(damage)
    assert known_options(FINGERPRINT) is None
    assert known_fingerprints() == ()
    keep_options(FINGERPRINT, "usage")
    assert known_fingerprints() == (FINGERPRINT,)
