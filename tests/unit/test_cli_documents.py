"""What `--json` prints is what `clusterctl schema` says, for every command and for errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from clusterctl.cli.app import to_json
from clusterctl.cli.documents import DOCUMENTS
from clusterctl.cli.main import COMMANDS
from clusterctl.install_reports import InstalledNode, InstallReport
from clusterctl.reports import Access, ActionReport, ConnectReport, LeftReport, StepReport
from clusterctl.small_reports import BundleReport, CauseReport, LineReport, LogsReport
from tests.unit.bench_samples import bench_report
from tests.unit.cli_program import Cli
from tests.unit.ui_rendering import check_report, plan_report, status_report

ROOT = Path(__file__).parents[2]
INVENTORY = """\
version: 1
cluster: demo-of-tests
nodes:
  - {name: here, role: head, connection: local, llama: {bin_dir: /no/such/place}}
"""
PLAN = ("-i", "inventory/mixed-pool.yaml", "-r", "recipes/mixed-pool-llama-3.3-70b.yaml", "plan")
FACTS = ("--facts", "recipes/facts/mixed-pool-llama-3.3-70b.json")
WITHOUT_DOCUMENT = {"schema", "completion"}
"""What they print is a document or a script of its own."""

STEPS = (StepReport("start the worker", "strix1", "done", 0.5), StepReport("plan the split", None, "done", 0.0))
SAMPLES = {
    "install": InstallReport(True, True, "b1", True, (InstalledNode("a", None, "/b1"),), None, (), STEPS),
    "check": check_report(),
    "plan": plan_report(),
    "up": ActionReport(True, True, "http://h:1", STEPS, access=Access("/k")),
    "down": ActionReport(False, True, None, STEPS, (LeftReport("strix1", "why"),)),
    "recover": ActionReport(True, False, "http://h:1", ()),
    "status": status_report(),
    "connect": ConnectReport("http://127.0.0.1:1", "h", "h:1", wants_key=True, access=Access(key_variable="K")),
    "bench": bench_report(),
    "logs": LogsReport((LineReport("h", "x"),), CauseReport("h", "c", "why", "do", "x", 0, False), {"w": "gone"}),
}


def schema_of(name: str, cli: Cli) -> dict[str, Any]:
    """A schema that allows no field but its own, so that none can be forgotten."""
    schema: dict[str, Any] = json.loads(cli("schema", name).stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    for part in (schema, *schema.get("$defs", {}).values()):
        if "properties" in part:
            part["additionalProperties"] = False
    return schema


def validate(document: str, name: str, cli: Cli) -> None:
    jsonschema.validate(json.loads(document), schema_of(name, cli), jsonschema.Draft202012Validator)


def test_every_command_that_answers_has_a_schema() -> None:
    assert set(DOCUMENTS) == set(COMMANDS) - WITHOUT_DOCUMENT | {"error"}


@pytest.mark.parametrize("arguments", [["check"], ["status"], ["down"], ["unlock"], ["version"]], ids=" ".join)
def test_an_answer_is_what_its_schema_says(arguments: list[str], cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "here.yaml").write_text(INVENTORY)
    done = cli(*arguments, "-i", str(tmp_path / "here.yaml"), "--json")
    validate(done.stdout, arguments[0], cli)


def test_a_plan_and_an_error_are_what_their_schemas_say(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    done = cli(*PLAN, *FACTS, "--json")
    assert done.exit_code == 0
    validate(done.stdout, "plan", cli)
    validate(cli(*PLAN, "--facts", "gone.json", "--json").stdout, "error", cli)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_report_is_what_its_schema_says(name: str, cli: Cli) -> None:
    validate(to_json(SAMPLES[name]), name, cli)


def test_a_bundle_is_an_answer_of_logs_too(cli: Cli) -> None:
    validate(to_json(BundleReport(True, "x.tar.gz", ("plan.json",))), "logs", cli)


def test_a_schema_refuses_what_it_does_not_say(cli: Cli) -> None:
    with pytest.raises(jsonschema.ValidationError, match="'version' is a required property"):
        validate("{}", "version", cli)
