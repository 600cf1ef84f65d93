"""What `clusterctl init` takes and refuses before it looks at any host."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.cli.completing import HOST
from clusterctl.cli.main import run
from clusterctl.cli.ssh_aliases import parse_ssh_config, ssh_aliases
from clusterctl.cli.values import Place, cluster_name, place, private_network
from clusterctl.remote.target import Destination

CONFIG = """\
# Host comment
Host desk strix1 *.lan !not me?
  HostName 10.0.0.1
Include lab/*.conf ~/more
host = "quoted name" tail # and a comment
Match host never
HOST\tjump
Host "unfinished
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("desk", Destination("desk")),
        ("ops@desk.lan", Destination("desk.lan", user="ops")),
        ("10.0.0.5:2222", Destination("10.0.0.5", port=2222)),
        ("domain@ops@desk", Destination("desk", user="domain@ops")),
        ("fe80::1", Destination("fe80::1")),
        ("localhost", None),
        (".", None),
    ],
)
def test_a_host_is_given_as_to_ssh(text: str, expected: Destination | None) -> None:
    assert place(text) == Place(text, expected)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "host must not be empty"),
        ("-oProxyCommand=x", "must not begin with `-`"),
        ("a b", "without spaces"),
        ("desk:0", "port must be 1..65535"),
        ("desk:ssh", "port must be a whole number"),
        ("desk:", "port must be a whole number"),
        ("@desk", "user must not be empty"),
        ("a/b", "without a port or a path"),
    ],
)
def test_what_is_no_host_is_refused_in_words(text: str, reason: str) -> None:
    with pytest.raises(click.BadParameter, match=reason):
        place(text)


@given(st.text(max_size=30))
def test_any_text_is_a_place_or_refused(text: str) -> None:
    try:
        assert place(text).text == text
    except click.BadParameter:
        return


def test_names_and_networks_are_those_of_an_inventory() -> None:
    assert cluster_name("home-lab") == "home-lab"
    assert str(private_network("10.0.0.0/24")) == "10.0.0.0/24"
    with pytest.raises(click.BadParameter, match="a-z"):
        cluster_name("Home Lab")
    with pytest.raises(click.BadParameter, match="must be the network, not a host in it"):
        private_network("10.0.0.1/24")


def test_aliases_come_from_the_ssh_configuration_and_what_it_includes(tmp_path: Path) -> None:
    folder = tmp_path / ".ssh"
    (folder / "lab").mkdir(parents=True)
    (folder / "config").write_text(CONFIG)
    (folder / "lab" / "a.conf").write_text("Host strix2\nInclude a.conf\nInclude ../config\n")
    (folder / "lab" / "b.conf").write_bytes(b"Host \xff strix3\n")
    (tmp_path / "more").write_text("Host desk more\n")
    found = ssh_aliases(tmp_path)
    assert [name for name in found if name.isascii()] == [
        "desk",
        "strix1",
        "strix2",
        "strix3",
        "more",
        "quoted name",
        "tail",
        "jump",
    ]


def test_without_a_configuration_there_are_no_aliases(tmp_path: Path) -> None:
    assert ssh_aliases(tmp_path) == ()


@given(st.text())
def test_no_configuration_is_too_strange(text: str) -> None:
    assert all(keyword in ("host", "include") for keyword, _ in parse_ssh_config(f"{text}\nHost {text}"))


def test_hosts_complete_also_after_a_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "config").write_text("Host desk strix1 strix2\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    parameter = click.Argument(["places"])
    context = click.Context(click.Command("init"))
    for begun, offered in {"str": ["strix1", "strix2"], "ops@d": ["ops@desk"]}.items():
        assert [each.value for each in HOST.shell_complete(context, parameter, begun)] == offered


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["unreachable.invalid", "unreachable.invalid"], "unreachable.invalid is named twice"),
        ([f"node{number}" for number in range(18)], "18 hosts are too many"),
        (["a.invalid", "--head", "b"], "--head b is none of the hosts"),
        (["a.invalid", "-o", "there.yaml"], "there.yaml exists"),
        (["a.invalid", "--cluster", "there"], "there.yaml exists"),
        (["a.invalid", "-o", "missing/x.yaml"], "there is no directory missing"),
    ],
)
def test_mistakes_are_told_before_any_host_is_looked_at(
    arguments: list[str],
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.yaml").write_text("mine\n")
    assert run(["init", "--yes", *arguments]) == 2
    shown = capsys.readouterr().err
    assert reason in shown
    assert "look at" not in shown
    assert (tmp_path / "there.yaml").read_text() == "mine\n"
