"""`--since`: a point in time as people write it, and the lines of a log that are not older. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from clusterctl.llama.log_stamp import stamp_s

_PARTS = re.compile(r"([0-9]{1,6})([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def parse_since(text: str, now: datetime) -> datetime:
    """Return the time that `10m`, `1h30m` or `2026-11-30T08:00` means; without a zone, one of `now`'s.

    Raises:
        ValueError: for any other text.
    """
    parts = _PARTS.findall(text)
    if parts and "".join(map("".join, parts)) == text:
        return now - sum((timedelta(**{_UNITS[unit]: int(number)}) for number, unit in parts), timedelta())
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo)


def lines_since(lines: Sequence[str], started_at: str, since: datetime) -> Iterator[str]:
    """Yield the lines logged at `since` or later by a program that was started at `started_at` (ISO 8601).

    A line without a stamp is as old as the one before it. Where no time can be told, all lines are yielded.
    """
    try:
        oldest_s = (since - datetime.fromisoformat(started_at)).total_seconds()
    except (ValueError, TypeError):
        yield from lines
        return
    age_s = next((seconds for line in lines if (seconds := stamp_s(line)) is not None), oldest_s)
    for line in lines:
        seconds = stamp_s(line)
        age_s = age_s if seconds is None else seconds
        if age_s >= oldest_s:
            yield line
