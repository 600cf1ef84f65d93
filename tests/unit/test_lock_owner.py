"""Who holds a lock, said by a process whose user may have no name."""

from __future__ import annotations

import os

import pytest

from clusterctl.cluster.lock import Owner, user_name


def test_a_user_without_a_name_is_told_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(variable, raising=False)
    nobody = 987_654
    monkeypatch.setattr(os, "getuid", lambda: nobody)
    assert user_name() == "987654"
    assert str(Owner.of_this_process("up")).startswith("987654@")


def test_a_user_with_a_name_is_told_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "ops")
    assert user_name() == "ops"
