"""The documents of `--json`, by command, and their JSON Schemas."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from pydantic import TypeAdapter

from clusterctl.config.schema import DIALECT, JsonSchema
from clusterctl.install_reports import InstallReport
from clusterctl.measurements import BenchReport
from clusterctl.plan_reports import PlanReport
from clusterctl.reports import ActionReport, CheckReport, ConnectReport, InitReport, StatusReport
from clusterctl.small_reports import BundleReport, ErrorReport, LogsReport, UnlockReport, VersionReport

ERROR = "error"
DOCUMENTS: Mapping[str, Any] = MappingProxyType(
    {
        "init": InitReport,
        "install": InstallReport,
        "check": CheckReport,
        "plan": PlanReport,
        "up": ActionReport,
        "status": StatusReport,
        "connect": ConnectReport,
        "bench": BenchReport,
        "logs": LogsReport | BundleReport,
        "down": ActionReport,
        "recover": ActionReport,
        "unlock": UnlockReport,
        "version": VersionReport,
        ERROR: ErrorReport,
    }
)


def document_schema(name: str) -> JsonSchema:
    """Return the JSON Schema (draft 2020-12) of what a command prints with `--json`, or of an error."""
    generated = TypeAdapter(DOCUMENTS[name]).json_schema(mode="serialization")
    for part in (generated, *generated.get("$defs", {}).values()):
        if "properties" in part:
            # A document has every key, also those whose value is the default.
            part["required"] = list(part["properties"])
    title = "clusterctl error" if name == ERROR else f"clusterctl {name} --json"
    return {"$schema": DIALECT, **generated, "title": title}
