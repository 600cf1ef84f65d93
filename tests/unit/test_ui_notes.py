"""What goes to stderr: progress and errors."""

from __future__ import annotations

import pty
from collections.abc import Iterable
from contextlib import redirect_stderr
from itertools import chain, repeat

import pytest
from hypothesis import given

from clusterctl.errors import ClusterctlError, ConfigError, Fault, NodesFailed, NodeUnreachable, StartFailed
from clusterctl.model import Outcome, Step
from clusterctl.reports import StepReport
from clusterctl.ui.failure import show_error
from clusterctl.ui.progress import Progress
from clusterctl.ui.screen import Color, Screen
from tests.unit.ui_rendering import HOSTILE, Shown, on_pipe, rendering, unseen

START = "start the worker"
THE_END = "<the end>"


def told(steps: Iterable[Step], screen: Screen, times: Iterable[float] = (), encoding: str = "utf-8") -> Shown:
    clock = chain(times, repeat(0.0))

    def show() -> None:
        with Progress(screen, lambda: next(clock)) as progress:
            for step in steps:
                progress(step)

    return on_pipe(show, encoding=encoding)


def on_terminal(
    steps: Iterable[Step], screen: Screen, monkeypatch: pytest.MonkeyPatch, kind: str = "xterm"
) -> str:
    monkeypatch.setenv("TERM", kind)
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    master, slave = pty.openpty()
    with open(slave, "w", encoding="utf-8") as terminal, open(master, "rb", buffering=0) as reader:
        with redirect_stderr(terminal), Progress(screen) as progress:
            for step in steps:
                progress(step)
        print(THE_END, end="", file=terminal, flush=True)
        written = b""
        while not written.endswith(THE_END.encode()):
            written += reader.read(65536)
        return written.decode().removesuffix(THE_END)


def test_without_a_terminal_each_ended_step_is_one_plain_line() -> None:
    steps = (
        Step(START, Outcome.STARTED, "strix1"),
        Step(START, Outcome.STARTED, "rtx"),
        Step(START, Outcome.DONE, "rtx", 1.24, "pid 4242"),
        Step(START, Outcome.FAILED, "strix1", 75, "out of\nmemory"),
        Step("check", Outcome.UNCHANGED),
        Step("launch", Outcome.WOULD, "rtx"),
        Step(START, Outcome.UNDONE, "rtx"),
    )
    shown = told(steps, Screen())
    assert shown.stdout == ""
    assert shown.stderr.splitlines() == [
        "✓ start the worker  rtx  1.2 s  pid 4242",
        "✗ start the worker  strix1  failed  1 min 15 s  out of memory",
        "= check  unchanged",
        "~ launch  rtx  would change",
        "↩ start the worker  rtx  undone",
    ]


def test_a_locale_without_unicode_gets_ascii_marks() -> None:
    ended = [outcome for outcome in Outcome if Step("", outcome).ended]
    shown = told((Step("do", outcome) for outcome in ended), Screen(), encoding="ascii")
    assert [line[0] for line in shown.stderr.splitlines()] == ["+", "=", "~", "x", "<", "!"]


def test_a_line_of_progress_is_never_wrapped_on_a_pipe() -> None:
    detail = "a long detail " * 30
    assert len(told((Step("do", Outcome.DONE, detail=detail),), Screen()).stderr.splitlines()) == 1


def test_waiting_is_told_when_it_changed_and_five_seconds_have_passed() -> None:
    details = ("10 %", "20 %", "20 %", "30 %", "30 %", "40 %")
    steps = (Step("load", Outcome.STARTED), *(Step("load", Outcome.WAITING, detail=text) for text in details))
    shown = told(steps, Screen(), times=(0.0, 2.0, 6.0, 7.0, 8.0, 11.5, 12.0))
    assert shown.stderr.splitlines() == ["• load  6.0 s  20 %", "• load  12 s  40 %"]


def test_quiet_progress_tells_failures_only() -> None:
    steps = (
        Step("load", Outcome.WAITING),
        Step("load", Outcome.DONE),
        Step("bind", Outcome.FAILED, detail="in use"),
    )
    assert told(steps, Screen(quiet=True)).stderr.splitlines() == ["✗ bind  failed  in use"]


def test_the_ended_steps_are_kept_for_the_report() -> None:
    def show() -> None:
        with Progress(Screen(quiet=True)) as progress:
            progress(Step(START, Outcome.STARTED, "rtx"))
            progress(Step(START, Outcome.DONE, "rtx", 1.5, "pid 1"))
            progress(Step("launch", Outcome.WOULD))
        assert progress.steps == (
            StepReport(START, "rtx", "done", 1.5),
            StepReport("launch", None, "would change", 0.0),
        )

    on_pipe(show)


LIVE_STEPS = (
    Step("load the model", Outcome.STARTED, "rtx"),
    Step(START, Outcome.STARTED, "strix1"),
    Step("load the model", Outcome.WAITING, "rtx", detail="45 %"),
    Step(START, Outcome.DONE, "strix1", 1.0),
)


def test_on_a_terminal_running_steps_show_below_the_ended_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    written = on_terminal(LIVE_STEPS, Screen(Color.NEVER), monkeypatch)
    assert "✓ start the worker  strix1  1.0 s" in written
    assert "• load the model  rtx  45 %" in written
    assert written.index("✓ start") < written.index("• load the model  rtx  45 %")
    after_the_last_erasure = written[written.rindex("\x1b[2K") :]
    assert "load the model" not in after_the_last_erasure


def test_a_terminal_without_progress_gets_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    written = on_terminal(LIVE_STEPS, Screen(Color.NEVER, no_progress=True), monkeypatch)
    assert written.splitlines() == ["✓ start the worker  strix1  1.0 s"]


def test_a_dumb_terminal_gets_plain_lines_without_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    written = on_terminal(LIVE_STEPS, Screen(), monkeypatch, kind="dumb")
    assert written.splitlines() == ["✓ start the worker  strix1  1.0 s"]


def test_a_terminal_gets_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b[32m✓" in on_terminal(LIVE_STEPS, Screen(no_progress=True), monkeypatch)


@rendering
@given(HOSTILE)
def test_hostile_steps_neither_act_nor_crash(text: str) -> None:
    steps = (
        Step(text, Outcome.STARTED, text),
        Step(text, Outcome.WAITING, text, detail=text),
        Step(text, Outcome.DONE, text, detail=text),
    )
    shown = told(steps, Screen(), times=(0.0, 9.0)).stderr
    assert not unseen(shown)
    assert len(shown.splitlines()) <= 2


def errors_shown(error: ClusterctlError, width: int = 80) -> str:
    shown = on_pipe(lambda: show_error(Screen(), error), width=width)
    assert shown.stdout == ""
    return shown.stderr


def test_an_error_names_node_log_next_step_and_notes() -> None:
    error = StartFailed("the worker ended", node="strix1", hint="free some memory", log=("alloc failed", "[end]"))
    error.add_note("could not undo `start`: gone")
    assert errors_shown(error).splitlines() == [
        "error: strix1: the worker ended",
        "  | alloc failed",
        "  | [end]",
        "hint: free some memory",
        "note: could not undo `start`: gone",
    ]


def test_every_failed_node_is_shown() -> None:
    causes = (
        NodeUnreachable("refused", node="rtx", hint="start sshd"),
        StartFailed("no port", node="strix1"),
    )
    assert errors_shown(NodesFailed(causes)).splitlines() == [
        "error: rtx: refused",
        "hint: start sshd",
        "error: strix1: no port",
    ]


def test_the_faults_of_a_file_stand_alone_and_unwrapped() -> None:
    faults = (Fault("a.yaml", 9, 1, "nodes", "too few " * 30), Fault("a.yaml", 2, 3, "", "bad"))
    assert errors_shown(ConfigError(faults), width=60).splitlines() == [
        "error: 2 faults found",
        "a.yaml:2:3: bad",
        f"a.yaml:9:1: nodes: {'too few ' * 30}".strip(),
    ]


@rendering
@given(HOSTILE)
def test_hostile_errors_neither_act_nor_pass_for_our_own_words(text: str) -> None:
    error = StartFailed(text, node=text, hint=text, log=(text,))
    error.add_note(text)
    shown = errors_shown(NodesFailed((error, ConfigError((Fault(text, 1, 1, text, text),)))))
    assert not unseen(shown)
    starts = ("error: ", "hint: ", "note: ", "  | ")
    assert all(line.startswith(starts) for line in shown.split("\n")[:-2])
