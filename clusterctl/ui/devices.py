"""Devices in a table's cell."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text

from clusterctl.model import Device
from clusterctl.ui.tables import stacked
from clusterctl.ui.units import part_of, size


def devices_cell(devices: Iterable[Device]) -> Text:
    """Return a line per device, `CUDA0 21.3/24.0 GiB`: free of total, `?` for what is not known."""
    return stacked(f"{device.name} {_free_of_total(device)}" for device in devices)


def _free_of_total(device: Device) -> str:
    if device.free_mib is None:
        return "?" if device.total_mib is None else f"?/{size(device.total_mib)}"
    if device.total_mib is None:
        return f"{size(device.free_mib)}/?"
    return part_of(device.free_mib, device.total_mib)
