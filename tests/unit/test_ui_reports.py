"""The answers of the commands as text: what they say, at any width, whatever a node says."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.model import Estimate
from clusterctl.plan_reports import HostReport
from clusterctl.reports import (
    Access,
    ActionReport,
    ConnectReport,
    HeadStatus,
    LeftReport,
    SkewReport,
    StatusReport,
    StepReport,
)
from clusterctl.ui.action import show_action
from clusterctl.ui.bars import Bar, part_widths
from clusterctl.ui.check import check_view, show_check
from clusterctl.ui.connect import show_connect
from clusterctl.ui.plan import plan_view, show_plan
from clusterctl.ui.screen import Color, Screen
from clusterctl.ui.status import show_status, status_view
from tests.unit.ui_rendering import (
    HOSTILE,
    MARKUP,
    WIDTHS,
    check_report,
    on_pipe,
    plan_report,
    rendered,
    rendering,
    status_report,
    unseen,
    widest,
    words,
)

SHOWS: dict[str, Callable[[Screen, str], None]] = {
    "check": lambda screen, text: show_check(screen, check_report(text)),
    "plan": lambda screen, text: show_plan(screen, plan_report(text)),
    "status": lambda screen, text: show_status(screen, status_report(text)),
    "action": lambda screen, text: show_action(
        screen, ActionReport(False, True, text or None, (), (LeftReport(text, text),))
    ),
}
every_show = pytest.mark.parametrize("show", SHOWS.values(), ids=SHOWS.keys())
every_width = pytest.mark.parametrize("width", WIDTHS)


@every_show
@rendering
@given(text=HOSTILE)
def test_hostile_text_neither_acts_nor_crashes(show: Callable[[Screen, str], None], text: str) -> None:
    assert not unseen(on_pipe(lambda: show(Screen(verbosity=1), text)).stdout)


@every_show
def test_markup_in_a_report_is_shown_as_it_is(show: Callable[[Screen, str], None]) -> None:
    assert words(MARKUP) in words(on_pipe(lambda: show(Screen(), MARKUP), width=200).stdout)


@every_show
def test_on_a_pipe_no_sentence_is_broken_and_no_line_padded(show: Callable[[Screen, str], None]) -> None:
    sentence = " ".join(["long"] * 100)
    lines = on_pipe(lambda: show(Screen(), sentence), COLUMNS="").stdout.splitlines()
    assert any(sentence in line for line in lines)
    assert not [line for line in lines if line != line.rstrip(" ")]


@every_show
def test_a_locale_without_unicode_gets_plain_signs(show: Callable[[Screen, str], None]) -> None:
    assert on_pipe(lambda: show(Screen(), "héllo 表"), encoding="ascii").stdout.isascii()


@every_show
def test_a_pipe_gets_no_colour_and_nothing_on_stderr(show: Callable[[Screen, str], None]) -> None:
    shown = on_pipe(lambda: show(Screen(), "x"))
    assert "\x1b" not in shown.stdout
    assert shown.stderr == ""


@every_show
def test_colour_can_be_forced_and_forbidden(show: Callable[[Screen, str], None]) -> None:
    assert "\x1b[" in on_pipe(lambda: show(Screen(Color.ALWAYS), "x"), NO_COLOR="1").stdout
    assert "\x1b[" in on_pipe(lambda: show(Screen(), "x"), FORCE_COLOR="1").stdout
    assert "\x1b" not in on_pipe(lambda: show(Screen(), "x"), NO_COLOR="1", FORCE_COLOR="1").stdout
    assert "\x1b" not in on_pipe(lambda: show(Screen(Color.NEVER), "x"), FORCE_COLOR="1").stdout


@every_width
@rendering
@given(text=HOSTILE)
def test_no_view_is_wider_than_the_screen(width: int, text: str) -> None:
    views = (
        check_view(check_report(text), is_verbose=True),
        plan_view(plan_report(text)),
        status_view(status_report(text)),
    )
    assert max(widest(rendered(view, width)) for view in views) <= width


@every_width
def test_a_check_names_every_node_its_build_and_its_memory(width: int) -> None:
    text = words(rendered(check_view(check_report(), is_verbose=False), width))
    for fact in (
        "strix1",
        "b11434",
        "(7e4c0a9)",
        "7.0.0",
        "10.10.0.21:50052",
        "ROCm0 95.7/96.0 GiB",
        "offline",
    ):
        assert fact in text


def test_a_check_shows_skew_with_reason_and_fix() -> None:
    text = rendered(check_view(check_report(), is_verbose=False), 80)
    assert "build skew: mismatch" in text
    assert "here, x: mismatch: another commit x\n    hint: build b11434 x" in text
    assert "the same commit" not in text
    assert "the same commit" in rendered(check_view(check_report(), is_verbose=True), 80)


def test_a_check_groups_problems_by_node_and_ends_with_a_verdict() -> None:
    text = rendered(check_view(check_report(), is_verbose=False), 80)
    assert "here\n  error: no SSH connection x [x]\n    hint: start sshd x\n" in text
    assert text.endswith("3 nodes, 1 unreachable, builds differ, 1 error, 1 warning: `up` would refuse\n")


def test_a_check_without_findings_is_a_table_and_one_line() -> None:
    lines = rendered(check_view(check_report(ok=True), is_verbose=False), 100).splitlines()
    assert len(lines) == 4
    assert lines[-1] == "1 node, all builds match, 0 errors"


def test_an_unknown_skew_is_never_told_as_a_match() -> None:
    report = replace(check_report(ok=True), ok=False, skew=SkewReport("unknown", ()))
    text = rendered(check_view(report, is_verbose=False), 100)
    assert "build skew: unknown" in text
    assert text.endswith("1 node, builds can't be verified, 0 errors: `up` would refuse\n")


@every_width
def test_a_plan_tells_layers_sizes_and_speed(width: int) -> None:
    text = words(rendered(plan_view(plan_report()), width))
    for fact in (
        "0-15 (16)",
        "16-29 (14) +",
        "40.0 GiB",
        "42.8 GiB",
        "89.8 GiB",
        "95% full",
        "head's memory",
    ):
        assert fact in text
    assert "left out: here/CPU: slow" in text
    assert "decode: 11.8 tok/s decode ceiling: 14.2 tok/s" in text
    assert "prefill: 148 tok/s prefill ceiling: 590 tok/s loading: 3 min 10 s" in text
    assert "advice: a draft model would help slow [draft]" in text


def test_a_plan_without_figures_says_that_no_speed_is_known() -> None:
    report = replace(plan_report(), estimate=Estimate())
    assert "estimate: no speed is known" in rendered(plan_view(report), 80)


def test_a_plan_that_does_not_fit_says_how_much_is_missing() -> None:
    text = rendered(plan_view(plan_report(fits=False)), 80)
    assert "the plan does not fit" in text
    assert "1.9 GiB over" in text


def test_a_known_budget_of_the_head_gets_a_bar() -> None:
    report = replace(plan_report(), host=HostReport(800, 0, 224, 1024, 4096))
    assert "25% full" in rendered(plan_view(report), 80)


def test_the_commands_of_a_plan_are_not_wrapped() -> None:
    path = "/models/" + "a long name " * 20
    text = on_pipe(lambda: show_plan(Screen(), plan_report(path)), width=60).stdout
    assert f"\nA_B='{path}' ggml-rpc-server \\\n  -d ROCm0\n" in text
    assert f"\n  -m '/m/{path}' \\\n  --rpc 10.10.0.21:50052\n" in text


@given(st.lists(st.floats(0, 1e9), min_size=4, max_size=4), st.integers(4, 200))
def test_the_parts_of_a_bar_add_up_and_none_is_lost(sizes: list[float], width: int) -> None:
    widths = part_widths(sizes, width)
    assert sum(widths) == (width if any(sizes) else 0)
    assert [part > 0 for part in widths] == [size > 0 for size in sizes]


def test_the_parts_of_a_bar_can_be_told_apart_without_colour() -> None:
    assert rendered(Bar((8, 4, 2, 2)), 20).strip() == "█████████▓▓▓▓▓▒▒▒···"


@every_width
def test_a_status_tells_state_processes_and_traffic(width: int) -> None:
    text = words(rendered(status_view(status_report()), width))
    for fact in ("cluster: up", "4242", "http://192.168.1.30:8080", "serving", "77", "stopped"):
        assert fact in text
    assert "traffic: 2 of 4 slots busy, decode 11.2 tok/s, prompt 148 tok/s" in text
    assert "error: the link is slow ok [x] hint: look at the cable ok" in text


def test_a_cluster_that_is_up_comes_with_a_question_to_ask() -> None:
    asked = on_pipe(lambda: show_status(Screen(), status_report()), width=60).stdout
    assert (
        "\ncurl http://192.168.1.30:8080/v1/chat/completions \\\n  -H 'Content-Type: application/json' \\\n"
        in asked
    )
    assert "curl" not in on_pipe(lambda: show_status(Screen(), status_report(state="degraded"))).stdout


@pytest.mark.parametrize("width", [60, 200])
def test_the_question_tells_where_key_and_certificate_are_and_can_be_pasted(width: int, tmp_path: Path) -> None:
    head = HeadStatus("rtx", 1, url="https://h:1", access=Access("/k 1", certificate="/c.pem"))
    report = StatusReport("up", head, ())
    said = on_pipe(lambda: show_status(Screen(), report), width=width).stdout.partition("ask it:\n")[2]
    lines, _, places = said.partition("API_KEY is")
    assert words(places) == "a line of /k 1 on rtx the certificate is a file on rtx; elsewhere name a copy of it"
    curl = tmp_path / "curl"
    curl.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
    curl.chmod(0o755)
    env = {"PATH": f"{tmp_path}:{os.defpath}", "API_KEY": "sk-a b"}
    given = subprocess.check_output(["sh", "-c", lines], env=env, text=True).splitlines()
    assert given[:3] == ["--cacert", "/c.pem", "https://h:1/v1/chat/completions"]
    assert given[-2:] == ["-H", "Authorization: Bearer sk-a b"]


def test_a_cluster_that_is_down_is_told_in_few_words() -> None:
    text = rendered(status_view(StatusReport("down", HeadStatus("rtx"), ())), 80)
    assert [line.split() for line in text.splitlines()] == [
        ["cluster:", "down"],
        [],
        ["head", "health", "pid", "holds", "since", "url"],
        ["rtx", "stopped", "-", "-", "-", "-"],
    ]


@pytest.mark.parametrize(
    ("report", "said"),
    [
        (ActionReport(True, True, "http://h:1", ()), "up: http://h:1\n"),
        (
            ActionReport(True, False, "http://h:1", ()),
            "up: http://h:1 (it ran already, nothing was changed)\n",
        ),
        (ActionReport(True, True, None, ()), "down: nothing is left\n"),
        (ActionReport(True, False, None, ()), "down: nothing was running\n"),
        (
            ActionReport(False, True, None, (), (LeftReport("strix1", "pid 77 does not end"),)),
            "1 thing left behind:\n  strix1: pid 77 does not end\n",
        ),
        (
            ActionReport(True, False, "http://h:1", (StepReport("start", "rtx", "would change", 0.0),)),
            "dry run: 1 step would change something; nothing was changed\n",
        ),
        (
            ActionReport(True, False, "http://h:1", (), dry_run=True),
            "dry run: it runs as asked for at http://h:1; nothing would change\n",
        ),
        (
            ActionReport(True, True, "http://h:1", (), waited=False),
            "started: http://h:1; still loading, not verified\n",
        ),
        (
            ActionReport(True, False, "http://h:1", (), waited=False),
            "started: http://h:1 (it ran already, nothing was changed); not waited for\n",
        ),
        (
            ActionReport(True, True, None, (), nodes=("desk",), spared=("strix1", "strix2")),
            "down: nothing is left on desk\nstill running: strix1, strix2\n",
        ),
        (
            ActionReport(False, False, None, (), (LeftReport("h", "no answer", "is it on?", seen=False),)),
            "1 node not seen:\n  h: no answer\n    hint: is it on?\n",
        ),
    ],
)
def test_an_action_ends_with_what_is_true_now(report: ActionReport, said: str) -> None:
    assert on_pipe(lambda: show_action(Screen(), report)).stdout.startswith(said)


def test_after_up_the_user_learns_how_to_ask_and_to_look() -> None:
    text = on_pipe(lambda: show_action(Screen(), ActionReport(True, True, "http://h:1/", ()))).stdout
    assert "curl http://h:1/v1/chat/completions" in text
    assert text.endswith("clusterctl status\n")


def test_what_an_earlier_run_left_elsewhere_is_said_last() -> None:
    report = ActionReport(True, True, "http://h:1", (), (LeftReport("old", "could not be reached"),))
    text = on_pipe(lambda: show_action(Screen(), report)).stdout
    assert text.startswith("up: http://h:1\n")
    assert text.endswith("left on nodes that are not of it any more:\n  old: could not be reached\n")


def test_the_next_command_names_the_same_inventory() -> None:
    screen = Screen(program=("clusterctl", "-i", "my lab.yaml"))
    text = on_pipe(lambda: show_action(screen, ActionReport(True, True, "http://h:1", ()))).stdout
    assert text.endswith("clusterctl -i 'my lab.yaml' status\n")


def test_a_head_that_answers_on_its_own_machine_alone_is_named_with_the_way_to_it() -> None:
    screen, access = Screen(program=("clusterctl", "-i", "lab.yaml")), Access(only_on="desk")
    done = ActionReport(True, True, "http://127.0.0.1:1", (), access=access)
    text = on_pipe(lambda: show_action(screen, done)).stdout
    assert "ask it on desk:\ncurl http://127.0.0.1:1/" in text
    assert "to ask from here, run `clusterctl -i lab.yaml connect` first" in text


def test_nobody_is_told_to_ask_what_was_not_waited_for() -> None:
    text = on_pipe(lambda: show_action(Screen(), ActionReport(True, True, "http://h:1", (), waited=False))).stdout
    assert "curl" not in text
    assert text.endswith("clusterctl status\n")


def test_who_wants_quiet_gets_the_result_alone() -> None:
    quiet = Screen(quiet=True)
    done = ActionReport(True, True, "http://h:1", ())
    assert on_pipe(lambda: show_action(quiet, done)).stdout == "up: http://h:1\n"
    assert "curl" not in on_pipe(lambda: show_status(quiet, status_report())).stdout
    way = ConnectReport("http://127.0.0.1:8080", "rtx", "10.0.0.1:8080", wants_key=False)
    assert on_pipe(lambda: show_connect(quiet, way)).stdout.count("\n") == 1


def test_a_reader_who_left_is_told_to_the_caller() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with pytest.raises(BrokenPipeError), open(writer, "w", encoding="utf-8") as gone, redirect_stdout(gone):
        show_action(Screen(), ActionReport(True, True, None, ()))
