"""Devices as the programs of llama.cpp list them, and how much of their memory may be used."""

from __future__ import annotations

import re

from clusterctl.llama.backends import BACKENDS, device_backend
from clusterctl.llama.text import plain_lines
from clusterctl.model import MIB, BudgetStep, Device, Problem, Severity

# "  CUDA0: NVIDIA GeForce RTX 3090 (24154 MiB, 23210 MiB free)" of --list-devices (common/arg.cpp) and of the
# worker (tools/rpc/rpc-server.cpp, ggml-rpc.cpp); "0.00.126 I   - SYCL0   : …" of llama-server's log.
_SIZES = re.compile(r"\s\((?P<total>\S+) MiB, (?P<free>\S+) MiB free\)\s*$")
_NAME = r"(?P<name>[A-Za-z][A-Za-z0-9]*(?:\[[^\]\s]+\])?)"
_LOG_MARKS = r"(?:\s*|.*?(?:[:\]|]|\s[A-Z-])\s+)(?:-\s+)?"
_ROW = re.compile(rf"{_LOG_MARKS}{_NAME}\s*:\s+(?!-\s)(?P<description>\S.*)")
_CUT_ROW = re.compile(r"\s+(?!\(none\))\S")
_EMPTY_HEADER = "Available devices:"

_OLD_BACKEND = re.compile(r"create_backend: using (\w+) backend")
_OLD_START = re.compile(r"Starting RPC server (?:on|v)")
_OLD_FREE = re.compile(r"backend memory\s*: ([0-9]+) MB")
_OLD_TOTAL = re.compile(r"\btotal_mem=([0-9]{1,20})\b")
_OLD_DESCRIPTION = re.compile(
    r"^(?:\s*Device 0: (.+?), |ggml_vulkan: 0 = (.+?)(?: \([^()]*\))? \| )", re.MULTILINE
)


def parse_devices(text: str) -> tuple[Device, ...] | None:
    """Return the devices that a listing names, `()` for an empty listing, `None` if `text` holds no listing.

    Reads `--list-devices`, the worker's banner of every protocol, its answer to an unknown `-d`, and the log
    of llama-server. Rows count wherever they stand, since stdout and stderr mix, and whatever else is said:
    the worker ends its list with "No devices found", meaning those asked for. Of rows with one name the last
    counts.
    """
    lines = plain_lines(text)
    rows = {device.name: device for line in lines if (device := _parse_row(line))}
    if rows:
        return tuple(rows.values())
    if _EMPTY_HEADER in (line.rstrip() for line in lines):
        return None if any(_CUT_ROW.match(line) for line in lines) else ()
    return _parse_old_worker("\n".join(lines))


def budget_mib(device: Device, reserve_mib: int, limit_mib: int | None) -> int | None:
    """Return how many MiB may be planned on a device: the smaller of free and total, less the reserve.

    On unified memory free may exceed total (llama.cpp issue 23858). Where the device can't tell its memory,
    the inventory's `limit_mib` stands for it, and without one the budget is unknown.
    """
    steps = budget_steps(device, reserve_mib, limit_mib)
    return steps[-1].left_bytes // MIB if steps else None


def budget_steps(device: Device, reserve_mib: int, limit_mib: int | None) -> tuple[BudgetStep, ...]:
    """Return the reckoning behind `budget_mib`, step by step; nothing where the budget is unknown."""
    left_mib: list[tuple[str, int]] = []
    if device.total_mib is None or device.free_mib is None:
        if limit_mib is not None:
            left_mib.append(("the limit in the inventory, for it does not tell its memory", limit_mib))
    else:
        left_mib.append(("free", device.free_mib))
        if device.total_mib < device.free_mib:
            left_mib.append(("no more than its total", device.total_mib))
        left_mib.append((f"less {reserve_mib} MiB that stay free", max(left_mib[-1][1] - reserve_mib, 0)))
        if limit_mib is not None and limit_mib < left_mib[-1][1]:
            left_mib.append(("the limit in the inventory", limit_mib))
    return tuple(BudgetStep(cause, left * MIB) for cause, left in left_mib)


def memory_problem(device: Device) -> Problem | None:
    """Return what is doubtful about a device's memory: not told, or all free as a driver that guesses says.

    SYCL without sysman and Vulkan without VK_EXT_memory_budget report free = total (llama.cpp issue 24996).
    """
    if device.total_mib is None or device.free_mib is None:
        return Problem(
            "memory-unknown",
            Severity.WARNING,
            f"{device.name} ({device.description}) does not tell its memory",
            "set memory.limit_mib of the node",
        )
    backend = BACKENDS.get(device_backend(device.name) or "")
    if backend and backend.free_is_guessed and device.free_mib == device.total_mib:
        return Problem(
            "free-memory-guessed",
            Severity.NOTE,
            f"{device.name} reports all of its {device.total_mib} MiB as free, which may be a guess",
            "set memory.reserve_mib to what other programs use; for SYCL set env ZES_ENABLE_SYSMAN: 1",
        )
    return None


def _parse_row(line: str) -> Device | None:
    sizes = _SIZES.search(line)
    row = _ROW.fullmatch(line, 0, sizes.start()) if sizes else None
    if sizes is None or row is None:
        return None
    total_mib, free_mib = _size_mib(sizes["total"]), _size_mib(sizes["free"])
    if not total_mib:
        total_mib, free_mib = None, free_mib or None
    return Device(row["name"], row["description"], total_mib, free_mib)


def _size_mib(digits: str) -> int | None:
    """A size, `None` for masked ones and for the huge ones that unsigned underflow makes."""
    return int(digits) if re.fullmatch("[0-9]{1,8}", digits) else None


def _parse_old_worker(text: str) -> tuple[Device, ...] | None:
    """The one device that workers before protocol 3.0.0 serve, whatever else is in the machine.

    Their banner tells free memory only; each accepted client adds the total (rpc-server.cpp of early 2025).
    """
    backend = _OLD_BACKEND.search(text)
    if backend is None or _OLD_START.search(text) is None:
        return None
    name = "ROCm" if re.search(r"found [0-9]+ ROCm devices", text) else backend[1]
    described = _OLD_DESCRIPTION.search(text)
    free, total = _OLD_FREE.search(text), _OLD_TOTAL.search(text)
    return (
        Device(
            name=name if name in ("CPU", "Metal") else f"{name}0",
            description=(described[1] or described[2]) if described else name,
            total_mib=_size_mib(str(int(total[1]) // MIB)) if total else None,
            free_mib=_size_mib(free[1]) if free else None,
        ),
    )
