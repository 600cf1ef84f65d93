"""What `init` shows of what it found."""

from __future__ import annotations

import json

from hypothesis import given

from clusterctl.cli.app import to_json
from clusterctl.reports import InitReport
from clusterctl.ui.init import show_init
from clusterctl.ui.screen import Screen
from tests.unit.ui_rendering import HOSTILE, check_report, on_pipe, rendering, unseen


def init_report(text: str = "x", *, ok: bool = True) -> InitReport:
    """A written inventory; `text` stands wherever outside text may."""
    checked = check_report(text, ok=ok)
    reasons = (
        f"rtx is the head: {text}",
        "network 10.10.0.0/24 (10 Gbit/s Ethernet): the fastest that all nodes share",
    )
    return InitReport(True, "my lab.yaml", checked.nodes, "10.10.0.0/24", "rtx", reasons, checked.skew)


def test_the_reasons_and_the_next_command_are_shown() -> None:
    shown = on_pipe(lambda: show_init(Screen(), init_report("it has the fastest device"))).stdout
    assert "rtx is the head: it has the fastest device" in shown
    assert "all builds match" in shown
    assert shown.endswith("\nclusterctl -i 'my lab.yaml' check\n")


def test_what_check_will_refuse_is_said_at_once() -> None:
    shown = on_pipe(lambda: show_init(Screen(), init_report(ok=False))).stdout
    assert "builds differ" in shown
    assert "`up` would refuse" in shown


@rendering
@given(HOSTILE)
def test_no_text_of_a_node_acts_on_the_terminal(text: str) -> None:
    shown = on_pipe(lambda: show_init(Screen(), init_report(text, ok=False)))
    assert not unseen(shown.stdout)


def test_the_document_has_the_fields_that_scripts_rely_on() -> None:
    document = json.loads(to_json(init_report()))
    assert {"ok", "path", "nodes", "network", "head", "reasons", "skew"} == document.keys()
    assert document["nodes"][0]["name"] == "strix1"
