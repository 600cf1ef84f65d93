"""When a line was logged: llama.cpp stamps its lines with the time since its start."""

from __future__ import annotations

import re

# Minutes, seconds, milliseconds and microseconds, as `0.00.372.141 I …` (llama.cpp common/log.cpp).
STAMP = re.compile(r"([0-9]{1,8})\.([0-9]{2})\.([0-9]{3})\.([0-9]{3})(?= |$)")


def stamp_s(line: str) -> float | None:
    """Return the seconds from the program's start to the line; `None` for a line without a stamp."""
    stamp = STAMP.match(line)
    if stamp is None:
        return None
    minutes, seconds, milliseconds, microseconds = map(int, stamp.groups())
    return minutes * 60 + seconds + milliseconds / 1e3 + microseconds / 1e6
