"""Sizes, times and counts in the words of people."""

from __future__ import annotations


def size(mib: float) -> str:
    """Return a size given in MiB as `512 MiB`, `24.0 GiB` or `1.50 TiB`."""
    if abs(mib) < 9.95:
        return f"{mib:.1f} MiB" if mib else "0 MiB"
    if abs(mib) < 1023.5:
        return f"{mib:.0f} MiB"
    gib = mib / 1024
    return f"{gib:.1f} GiB" if abs(gib) < 1023.95 else f"{gib / 1024:.2f} TiB"


def part_of(part_mib: float, whole_mib: float) -> str:
    """Return `21.3/24.0 GiB`, with both units where they differ."""
    part, whole = size(part_mib), size(whole_mib)
    number, unit = part.split()
    return f"{number}/{whole}" if whole.endswith(unit) else f"{part} / {whole}"


def duration(seconds: float) -> str:
    """Return a time as `0.4 s`, `42 s`, `3 min 10 s` or `2 h 5 min`."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def count(number: int, noun: str) -> str:
    """Return `1 node`, `3 nodes`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def rate(mbit_s: float) -> str:
    """Return the throughput of a link in the unit that keeps it short."""
    return f"{mbit_s / 1000:.1f} Gbit/s" if mbit_s >= 1000 else f"{mbit_s:.0f} Mbit/s"
