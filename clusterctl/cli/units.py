"""Service files that keep `recover --watch` running: systemd on Linux, launchd on macOS."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

SYSTEMD = """\
# ~/.config/systemd/user/clusterctl.service
# systemctl --user enable --now clusterctl; loginctl enable-linger keeps it running after logout
# A service has no SSH agent: the key must work without one.
[Unit]
Description=clusterctl keeps the cluster up
Wants=network-online.target
After=network-online.target

[Service]
ExecStart={command}
Restart=on-failure
RestartSec=60
# 2: the files are wrong. 9: a node broke again and again. Then a human must look, and start it again.
RestartPreventExitStatus=2 9
# SIGTERM ends the watch, not the cluster; in the midst of a restart it undoes that first.
KillMode=mixed
SuccessExitStatus=130
TimeoutStopSec=180

[Install]
WantedBy=default.target
"""

LAUNCHD = """\
<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<!--
  ~/Library/LaunchAgents/clusterctl.plist, then: launchctl load ~/Library/LaunchAgents/clusterctl.plist
  It comes back after a crash, not once it has given up: then a human must look, and `launchctl start clusterctl`.
  A service has no SSH agent: the key must work without one.
-->
<plist version="1.0">
<dict>
  <key>Label</key><string>clusterctl</string>
  <key>ProgramArguments</key>
  <array>
{arguments}
  </array>
  <key>RunAtLoad</key><true/>
  <key>KeepAlive</key><dict><key>Crashed</key><true/></dict>
  <key>ExitTimeOut</key><integer>180</integer>
  <key>StandardErrorPath</key><string>{log}</string>
</dict>
</plist>
"""


def systemd_unit(command: Sequence[str]) -> str:
    """Return a user unit that runs `command`."""
    return SYSTEMD.format(command=" ".join(map(_systemd_word, command)))


def launchd_plist(command: Sequence[str]) -> str:
    """Return an agent that runs `command`."""
    arguments = "\n".join(f"    <string>{escape(word)}</string>" for word in command)
    return LAUNCHD.format(arguments=arguments, log=escape(str(Path.home() / "Library/Logs/clusterctl.log")))


UNITS: Mapping[str, Callable[[Sequence[str]], str]] = {"systemd": systemd_unit, "launchd": launchd_plist}


def _systemd_word(word: str) -> str:
    """Quote as systemd.syntax(7) wants it: `%` and `$` are its own, even within quotes."""
    quoted = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{quoted}"'
