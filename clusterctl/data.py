"""The YAML files of this package: what clusterctl knows as data."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import yaml

try:
    # Ten times faster, which every start of the program feels.
    from yaml import CSafeLoader as Loader
except ImportError:
    from yaml import SafeLoader as Loader  # type: ignore[assignment]


__all__ = ["Loader", "read_data"]


def read_data(package: str, name: str) -> dict[str, Any]:
    """Return the map that a YAML file of `package` holds."""
    data: dict[str, Any] = yaml.load(files(package).joinpath(name).read_text("utf-8"), Loader)
    return data
