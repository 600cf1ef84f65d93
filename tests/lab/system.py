"""Runs the machine's own tools for the lab; a failure shows what they said."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence

TOOLS = ("chroot", "hostname", "ip", "nsenter", "setpriv", "ssh", "ssh-keygen", "sshd", "tc", "unshare")
# A plain user's PATH often lacks the folders of sshd, ip and tc.
SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class LabError(Exception):
    """The lab could not do what a test asked; says which command failed and what it printed."""


def run(
    argv: Sequence[str],
    *,
    stdin: str = "",
    env: Mapping[str, str] | None = None,
    check: bool = True,
    timeout_s: float = 30,
) -> subprocess.CompletedProcess[str]:
    """What a command printed; with `check`, `LabError` unless it exits 0."""
    done = subprocess.run(
        argv,
        input=stdin,
        env={"PATH": SEARCH_PATH} if env is None else env,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=timeout_s,
        check=False,
    )
    if check and done.returncode != 0:
        raise LabError(f"{' '.join(argv)}: exit {done.returncode}\n{stdin}{done.stdout}{done.stderr}")
    return done


def ip(commands: Sequence[str], *, namespace: str | None = None) -> None:
    """Run many `ip` commands in one process, in a network namespace or the machine's own; or `LabError`."""
    if commands:
        where = ["-netns", namespace] if namespace else []
        run([tool("ip"), *where, "-batch", "-"], stdin="\n".join(commands) + "\n")


def tool(name: str) -> str:
    """The full path of one of `TOOLS`."""
    path = shutil.which(name, path=SEARCH_PATH)
    if path is None:
        raise LabError(f"{name} is not installed")
    return path


def missing_requirement() -> str | None:
    """Why this machine can't hold a lab, or None where it can."""
    if sys.platform != "linux":
        return f"the lab needs Linux, not {sys.platform}"
    if os.geteuid() != 0:
        return "the lab needs root (it makes network namespaces)"
    if missing := [name for name in TOOLS if shutil.which(name, path=SEARCH_PATH) is None]:
        return f"the lab needs {', '.join(missing)} (Debian: apt-get install openssh-server iproute2)"
    trial = run([tool("unshare"), "--net", "--mount", "--pid", "--uts", "--fork", "true"], check=False)
    return f"namespaces can't be made here: {trial.stderr.strip()}" if trial.returncode else None
