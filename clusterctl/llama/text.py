"""Program output as plain lines, whatever terminal, pager or Windows machine it came through."""

from __future__ import annotations

import re

_TERMINAL_SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


def plain_lines(text: str) -> list[str]:
    """Lines without colour codes and line ends (LF, CRLF or CR)."""
    return _TERMINAL_SEQUENCE.sub("", text).splitlines()
