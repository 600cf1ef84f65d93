"""What holds for every test, however the suite was started."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from types import FrameType

DEFAULTS: Mapping[signal.Signals, Callable[[int, FrameType | None], None] | signal.Handlers] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGHUP: signal.SIG_DFL,
}


def pytest_configure() -> None:
    """`nohup`, and a script's `&`, hand down signals that are ignored; commands then ignore them too."""
    for number, default in DEFAULTS.items():
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, default)


def pytest_xdist_auto_num_workers() -> int:
    """One more than there are processors: tests of the lab wait a third of their time."""
    return (os.cpu_count() or 1) + 1
