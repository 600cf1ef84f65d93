"""Running a command's asynchronous work from start to end, signals included."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn, TypeVar

from clusterctl.errors import Interrupted

Result = TypeVar("Result")

# Ctrl-C, a service manager's stop, and a terminal that was closed.
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# `timeout` and a closing terminal signal the program and then its whole group: one interrupt, not two.
TOGETHER_S = 0.05
LAST = 3


class Interrupts:
    """Counts the interrupts among signals; `clock` counts seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._last_s = float("-inf")
        self._count = 0

    def count(self) -> int | None:
        """Take one signal; return which interrupt it is, or `None` if it belongs to the one before."""
        now_s = self._clock()
        if now_s - self._last_s < TOGETHER_S:
            return None
        self._last_s = now_s
        self._count += 1
        return self._count


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a command to its end; every signal that asks it to end cancels it, so what it undoes is undone.

    A second one leaves the undoing; a third ends the program at once, whatever it waits for.
    """

    async def guarded() -> Result:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None
        interrupts = Interrupts(loop.time)

        def interrupt() -> None:
            number = interrupts.count()
            if number == LAST:
                _leave()
            if number is not None:
                task.cancel()

        for each in ENDING:
            # `nohup` and a script's `&` make a program ignore one of them.
            if signal.getsignal(each) is not signal.SIG_IGN:
                loop.add_signal_handler(each, interrupt)
        return await work

    try:
        return asyncio.run(guarded())
    except asyncio.CancelledError as error:
        raise KeyboardInterrupt from error


def _leave() -> NoReturn:
    """End the program without waiting for anything: a connection, or a thread that looks up a name."""
    from clusterctl.ui.console import notes_console  # noqa: PLC0415  # rich takes long to import
    from clusterctl.ui.failure import show_error  # noqa: PLC0415
    from clusterctl.ui.screen import Screen  # noqa: PLC0415

    error = Interrupted(
        "interrupted for the third time, so this ends at once",
        hint="`clusterctl status` shows what runs, `clusterctl down` ends it",
    )
    error.add_note(
        "what was started, or was being ended, may still run; the cluster's lock may stay for a minute, "
        "`clusterctl unlock` removes it"
    )
    notes_console(Screen()).show_cursor()
    show_error(Screen(), error)
    os._exit(error.exit_code)
