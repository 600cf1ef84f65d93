"""Where SSH leads, in words and as the command to try by hand."""

from __future__ import annotations

import asyncio
import shlex

import pytest

from clusterctl.errors import NodeUnreachable
from clusterctl.remote.ssh import connect
from clusterctl.remote.target import Destination


def test_an_alias_alone_is_tried_by_its_name() -> None:
    assert Destination("strix1").command() == "ssh strix1"


def test_all_that_was_tried_is_in_the_command_to_try_by_hand() -> None:
    there = Destination("strix1.lan", "ops", 2222, "/keys/my key", "/keys/hosts")
    command = there.command()
    assert command == "ssh -p 2222 -l ops -i '/keys/my key' -o UserKnownHostsFile=/keys/hosts strix1.lan"
    assert shlex.split(command)[6] == "/keys/my key"


def test_a_quoted_home_is_filled_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/my home")
    assert Destination("a", identity_file="~/id").command() == "ssh -i '/home/my home/id' a"


@pytest.mark.parametrize(
    ("there", "shown"),
    [
        (Destination("a.lan"), "a.lan"),
        (Destination("a.lan", port=22), "a.lan"),
        (Destination("a.lan", port=2222), "a.lan:2222"),
        (Destination("fd00::1", port=2222), "[fd00::1]:2222"),
    ],
)
def test_a_port_is_shown_where_it_is_not_sshs_own(there: Destination, shown: str) -> None:
    assert str(there) == shown


def test_a_name_that_nobody_knows_is_told_without_numbers() -> None:
    with pytest.raises(NodeUnreachable) as caught:
        asyncio.run(connect("a", Destination("nobody.invalid", user="ops", connect_timeout_s=5)))
    assert "Errno" not in caught.value.message
    assert "`ssh -l ops nobody.invalid`" in str(caught.value.hint)
