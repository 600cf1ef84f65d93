"""Service files: what the tools that read them make of them."""

from __future__ import annotations

import plistlib
import shlex
import shutil
import subprocess
from configparser import ConfigParser
from pathlib import Path

import pytest
from click.testing import CliRunner

from clusterctl.cli.main import cli
from clusterctl.cli.units import UNITS, launchd_plist, systemd_unit

NASTY = ("/opt/my tools/clusterctl", "-i", '/root/a "b".yaml', "100%", "$HOME", "back\\slash", "<&>", "it's")


def test_launchd_gets_every_word_as_it_is() -> None:
    job = plistlib.loads(launchd_plist(NASTY).encode())
    assert job["ProgramArguments"] == list(NASTY)
    assert job["KeepAlive"] == {"Crashed": True}


def test_systemd_gets_every_word_as_it_is() -> None:
    unit = _parsed(systemd_unit(NASTY))
    words = shlex.split(unit["Service"]["ExecStart"])
    assert [word.replace("%%", "%").replace("$$", "$") for word in words] == list(NASTY)


def test_systemd_does_not_start_again_what_has_given_up() -> None:
    unit = _parsed(systemd_unit(NASTY))
    assert unit["Service"]["Restart"] == "on-failure"
    assert unit["Service"]["RestartPreventExitStatus"].split() == ["2", "9"]
    assert unit["Service"]["SuccessExitStatus"] == "130"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_finds_no_fault(tmp_path: Path) -> None:
    unit = tmp_path / "clusterctl.service"
    unit.write_text(systemd_unit(("/bin/true", *NASTY[1:])))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--user", str(unit)], capture_output=True, text=True, check=False
    )
    assert [line for line in done.stderr.splitlines() if "clusterctl.service" in line] == []


@pytest.mark.parametrize("name", list(UNITS))
def test_the_unit_calls_for_the_options_that_were_given(tmp_path: Path, name: str) -> None:
    files = ["-i", str(tmp_path / "i.yaml"), "-r", str(tmp_path / "r.yaml")]
    options = ["--interval", "5", "--allow-skew", "--restarts", "3"]
    printed = CliRunner().invoke(cli, [*files, "recover", *options, "--print-unit", name])
    assert printed.exit_code == 0
    plain = " ".join(printed.output.replace('"', "").replace("<string>", "").replace("</string>", "").split())
    assert " ".join([*files, "--no-progress recover --watch --interval 5 --restarts 3 --allow-skew"]) in plain
    assert "--timeout" not in plain


def test_a_unit_needs_to_know_the_files() -> None:
    assert CliRunner().invoke(cli, ["recover", "--print-unit", "systemd"], env=NO_FILES).exit_code != 0


NO_FILES = {"CLUSTERCTL_INVENTORY": None, "CLUSTERCTL_RECIPE": None}


def _parsed(text: str) -> ConfigParser:
    unit = ConfigParser(interpolation=None, delimiters=("=",))
    unit.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their case
    unit.read_string(text)
    return unit
