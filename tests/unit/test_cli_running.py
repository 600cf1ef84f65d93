"""What signals do to a command: the first undoes, the second leaves the undoing, the third leaves at once."""

from __future__ import annotations

import signal
import subprocess
import sys

from clusterctl.cli.running import TOGETHER_S, Interrupts

# Every cancellation is told and ignored, as by an undo that waits for a node which never answers.
STUBBORN = """
import asyncio
from clusterctl.cli import running
async def work():
    print("began", flush=True)
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            print("cancelled", flush=True)
running.TOGETHER_S = 0.0
running.run(work())
"""


def test_signals_that_come_together_are_one_interrupt() -> None:
    times_s = iter([0.0, TOGETHER_S / 2, 10.0, 10.0, 20.0])
    interrupts = Interrupts(lambda: next(times_s))
    assert [interrupts.count() for _ in range(5)] == [1, None, 2, None, 3]


def test_a_third_interrupt_ends_what_ignores_the_others_and_says_what_to_do() -> None:
    with subprocess.Popen(
        ["env", "--default-signal", sys.executable, "-c", STUBBORN],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as command:
        assert command.stdout is not None
        assert command.stderr is not None
        assert command.stdout.readline() == "began\n"
        for number in (signal.SIGINT, signal.SIGTERM):
            command.send_signal(number)
            assert command.stdout.readline() == "cancelled\n"
        command.send_signal(signal.SIGINT)
        said = command.stderr.read()
    assert command.returncode == 130
    assert "ends at once" in said
    assert "clusterctl down" in said
    assert "clusterctl unlock" in said
    assert "Traceback" not in said
