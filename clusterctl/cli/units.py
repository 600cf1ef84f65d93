"""Service files that keep `recover --watch` running: systemd on Linux, launchd on macOS."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from xml.sax.saxutils import escape

SYSTEMD = """\
# ~/.config/systemd/user/clusterctl.service
# systemctl --user enable --now clusterctl; loginctl enable-linger keeps it running after logout
[Unit]
Description=clusterctl keeps the cluster up
Wants=network-online.target
After=network-online.target

[Service]
ExecStart={command}
Restart=on-failure
RestartSec=60
# SIGTERM ends the watch, not the cluster
KillMode=mixed

[Install]
WantedBy=default.target
"""

LAUNCHD = """\
<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<!-- ~/Library/LaunchAgents/clusterctl.plist, then: launchctl load ~/Library/LaunchAgents/clusterctl.plist -->
<plist version="1.0">
<dict>
  <key>Label</key><string>clusterctl</string>
  <key>ProgramArguments</key>
  <array>
{arguments}
  </array>
  <key>RunAtLoad</key><true/>
  <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>
</dict>
</plist>
"""


def systemd_unit(command: Sequence[str]) -> str:
    """Return a user unit that runs `command`."""
    return SYSTEMD.format(command=" ".join(map(_systemd_word, command)))


def launchd_plist(command: Sequence[str]) -> str:
    """Return an agent that runs `command`."""
    return LAUNCHD.format(arguments="\n".join(f"    <string>{escape(word)}</string>" for word in command))


UNITS: Mapping[str, Callable[[Sequence[str]], str]] = {"systemd": systemd_unit, "launchd": launchd_plist}


def _systemd_word(word: str) -> str:
    """Quote as systemd.syntax(7) wants it: `%` and `$` are its own, even within quotes."""
    quoted = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{quoted}"'
