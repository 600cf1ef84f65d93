"""Running a command's asynchronous work from start to end, signals included."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")

# Ctrl-C, a service manager's stop, and a terminal that was closed.
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a command to its end; every signal that asks it to end cancels it, so what it undoes is undone."""

    async def guarded() -> Result:
        task = asyncio.current_task()
        assert task is not None
        for each in ENDING:
            # `nohup` and a script's `&` make a program ignore one of them.
            if signal.getsignal(each) is not signal.SIG_IGN:
                asyncio.get_running_loop().add_signal_handler(each, task.cancel)
        return await work

    try:
        return asyncio.run(guarded())
    except asyncio.CancelledError as error:
        raise KeyboardInterrupt from error
