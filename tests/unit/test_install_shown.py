"""What `install` shows, and the fields of its document that scripts rely on."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest
from hypothesis import given

from clusterctl.install_reports import InstalledNode, InstallReport
from clusterctl.reports import (
    BuildReport,
    ProgramsReport,
    SkewEvidence,
    SkewReport,
    StepReport,
)
from clusterctl.ui.install import install_view
from tests.unit.ui_rendering import HOSTILE, WIDTHS, rendered, rendering, unseen

NODE = InstalledNode(
    "strix1",
    "b10068-1a2b3c4d",
    "b10434-5e6f7a8b",
    BuildReport("b10434", 10434, "7e4c0a9", "0.1.0"),
    ProgramsReport("/home/ops/current/llama-server", "/home/ops/current/ggml-rpc-server"),
)
REPORT = InstallReport(
    ok=True,
    changed=True,
    build="b10434",
    confirmed=True,
    nodes=(NODE, replace(NODE, name="desk", before=None)),
    skew=SkewReport("match", ()),
    restart=(),
    steps=(StepReport("switch", "strix1", "done", 0.1),),
)


def test_each_node_shows_what_it_had_and_what_it_has() -> None:
    lines = rendered(install_view(REPORT), 100).splitlines()
    assert lines[1].split() == ["strix1", "b10068-1a2b3c4d", "b10434-5e6f7a8b", "b10434", "(7e4c0a9)"]
    assert lines[2].split()[:3] == ["desk", "-", "b10434-5e6f7a8b"]
    assert lines[-1].strip() == "all builds match"


@pytest.mark.parametrize(
    ("report", "said"),
    [
        (replace(REPORT, changed=False), "as before, nothing was changed"),
        (replace(REPORT, confirmed=False), "the programs don't say that they are b10434"),
        (replace(REPORT, restart=("strix1",)), "clusterctl up --replace"),
        (
            replace(REPORT, skew=None, steps=(StepReport("switch", "strix1", "would change", 0.0),)),
            "dry run: 1 step would change something; nothing was changed",
        ),
    ],
)
def test_what_is_still_to_be_known_is_said(report: InstallReport, said: str) -> None:
    assert said in rendered(install_view(report), 120)
    assert said not in rendered(install_view(REPORT), 120)


@rendering
@given(HOSTILE)
def test_no_text_of_a_node_acts_on_the_terminal(text: str) -> None:
    node = InstalledNode(text, text, text, BuildReport(text, None, text, text))
    evidence = SkewEvidence(text, "running process", "mismatch", text)
    report = replace(REPORT, nodes=(node,), build=text, restart=(text,), skew=SkewReport("match", (), (evidence,)))
    for width in WIDTHS:
        assert not unseen(rendered(install_view(replace(report, confirmed=False)), width))


def test_the_document_has_the_fields_that_scripts_rely_on() -> None:
    document = json.loads(json.dumps(asdict(REPORT)))
    assert document.keys() == {"ok", "changed", "build", "confirmed", "nodes", "skew", "restart", "steps"}
    assert document["nodes"][0].keys() == {"name", "before", "now", "build", "programs"}
