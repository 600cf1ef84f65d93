"""What a user would see: output caught as on a pipe, text that tries to do harm, and reports to show."""

from __future__ import annotations

import io
import unicodedata
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console, RenderableType

from clusterctl.model import Advice, Device, Estimate, Problem, Severity
from clusterctl.plan_reports import CommandReport, DeviceReport, HostReport, PlanReport, UnusedReport
from clusterctl.reports import (
    BuildReport,
    CheckReport,
    HeadStatus,
    NodeReport,
    ProgramsReport,
    SkewEvidence,
    SkewGroup,
    SkewReport,
    StatusReport,
    TrafficReport,
    WorkerStatus,
)

WIDTHS = (60, 80, 120)
rendering = settings(max_examples=30, deadline=None)
MARKUP = "[red]x[/] [link=http://evil]y[/link] :boom:"
HOSTILE = st.one_of(
    st.text(),
    st.sampled_from(
        [
            "\x1b[2J\x1b]0;title\x07",
            MARKUP,
            "\u202eabc",
            "a\nerror: b",
            "\r\x9b31m",
            "\ud800",
            "x" * 300,
            "表" * 90,
        ]
    ),
)


@dataclass(frozen=True)
class Shown:
    """What came out on both streams."""

    stdout: str
    stderr: str


def on_pipe(show: Callable[[], None], *, width: int = 80, encoding: str = "utf-8", **environment: str) -> Shown:
    """Run `show` with both streams piped, and return what was written."""
    outs = [
        io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors=mode) for mode in ("strict", "backslashreplace")
    ]
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(outs[0]), redirect_stderr(outs[1]):
        for name in ("NO_COLOR", "FORCE_COLOR"):
            patch.delenv(name, raising=False)
        for name, value in {"COLUMNS": str(width), **environment}.items():
            patch.setenv(name, value)
        show()
    return Shown(*(_written(out) for out in outs))


def rendered(view: RenderableType, width: int) -> str:
    """Return a view as plain text of at most `width` columns."""
    console = Console(file=io.StringIO(), width=width, color_system=None, markup=False, highlight=False)
    with console.capture() as capture:
        console.print(view)
    return capture.get()


def unseen(text: str) -> set[str]:
    """Return the characters that a terminal would act on or hide."""
    return {c for c in text if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")}


def widest(text: str) -> int:
    """Return the columns of the longest line."""
    return max(map(cell_len, text.split("\n")))


def words(text: str) -> str:
    """Return the text without line breaks and padding."""
    return " ".join(text.split())


def check_report(text: str = "x", *, ok: bool = False) -> CheckReport:
    """Return a report of three nodes, one of them offline; `text` stands wherever outside text may."""
    build = BuildReport("b11434", 11434, "7e4c0a9", None)
    warning = Problem("low-memory", Severity.WARNING, f"CUDA1 is nearly full {text}", f"free it {text}")
    error = Problem(text, Severity.ERROR, f"no SSH connection {text}", f"start sshd {text}")
    nodes = (
        NodeReport(
            "strix1",
            "worker",
            True,
            text,
            text,
            build,
            "7.0.0",
            ProgramsReport(text, None),
            "10.10.0.21:50052",
            (Device("ROCm0", text, 98304, 98000),),
        ),
        NodeReport(
            f"rtx{text}",
            "head",
            True,
            build=build,
            devices=(Device("CUDA0", text, 24576, 24105), Device(text, text, 24576, None)),
            problems=(warning,),
        ),
        NodeReport("here", text, False, rpc_protocol=text, rpc_address=text, problems=(error,)),
    )
    if ok:
        return CheckReport(True, SkewReport("match", (SkewGroup("b11434", ("strix1",)),)), nodes[:1])
    groups = (SkewGroup("b11434 (7e4c0a9)", ("strix1", "rtx")), SkewGroup(text, (text,)))
    evidence = (
        SkewEvidence("strix1", "llama-server", "match", "the same commit"),
        SkewEvidence("here", text, "mismatch", f"another commit {text}", f"build b11434 {text}"),
    )
    return CheckReport(False, SkewReport("mismatch", groups, evidence), nodes)


def plan_report(text: str = "slow", *, fits: bool = True) -> PlanReport:
    """Return a plan over two devices; the second has no room if it does not fit."""
    budget_mib = 23000.0 if fits else 20000.0
    return PlanReport(
        fits,
        f"memory{text}",
        30,
        (
            DeviceReport("strix1", f"ROCm0{text}", "RPC0", (0, 15), False, 41000, 2048, 800, 43848, 92000),
            DeviceReport("rtx", "CUDA0", "CUDA0", (16, 29), True, 20000, 1048, 900, 21948, budget_mib, text),
        ),
        HostReport(800, 0, 120, 920),
        (UnusedReport("here", "CPU", text),),
        ("RPC0", "CUDA0"),
        (16, 15),
        (
            CommandReport("strix1", "worker", ("ggml-rpc-server", "-d", "ROCm0"), {"A_B": text}),
            CommandReport("rtx", "head", ("llama-server", "-m", f"/m/{text}", "--rpc", "10.10.0.21:50052")),
        ),
        Estimate(11.8, 14.2, 148.0, 590.0, 190.0, f"the memory of strix1 {text}"),
        (Advice("draft", f"a draft model would help {text}"),),
    )


def status_report(text: str = "ok", *, state: str = "up") -> StatusReport:
    """Return the status of a head and two workers, one of them stopped."""
    return StatusReport(
        state,
        HeadStatus("rtx", 4242, "2026-11-30 02:25:11", "http://192.168.1.30:8080", text),
        (
            WorkerStatus(
                "strix1",
                "10.10.0.21:50052",
                77,
                "serving",
                ("10.10.0.21:50052", text),
                "7.0.0",
                (Device("ROCm0", text, 98304, 98000),),
            ),
            WorkerStatus("here", text, rpc_protocol=text),
        ),
        TrafficReport(148.2, 11.21, 2, 4),
        (Problem("x", Severity.ERROR, f"the link is slow {text}", f"look at the cable {text}"),),
    )


def _written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    binary = stream.buffer
    assert isinstance(binary, io.BytesIO)
    return binary.getvalue().decode(stream.encoding)
