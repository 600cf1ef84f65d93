"""One fault at one moment: what `status` says of it, and what becomes of the cluster by `recover`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass

from tests.lab.faults import Fault, Moment
from tests.lab.generation import generating
from tests.lab.operator import Finished, Operator
from tests.lab.test_serving import ask

# At this rate the model takes minutes, so that whatever is done is done while it loads.
LOADING_MBIT = 2
DEADLINE_S = 4
RECOVER = ("recover", "--token-timeout", str(DEADLINE_S), "--stall-timeout", "6", "--restarts", "1", "--json")

Pids = Mapping[str, frozenset[int]]


@dataclass(frozen=True, slots=True)
class Ordeal:
    """What was seen: `status` while the fault lasted, what `recover` did then and at the end, and for how long.

    `was_touched`: a program of the cluster has been replaced. `text` is what the cluster answers in the end.
    """

    status: Finished
    hindered: Finished | None
    recovered: Finished
    seconds: float
    was_touched: bool
    text: str

    @property
    def state(self) -> str:
        """The state that `status` told."""
        return str(self.status.document["state"])

    @property
    def codes(self) -> frozenset[str]:
        """The errors that `status` named."""
        return frozenset(p["code"] for p in self.status.document["problems"] if p["severity"] == "error")


def endure(fault: Fault, moment: Moment, operator: Operator) -> Ordeal:
    """Let a fault strike a cluster at a moment, and bring it back; it serves at the end, or recovery failed."""
    with MOMENTS[moment](operator) as go_on, ExitStack() as lasting:
        before = pids(operator)
        lasting.enter_context(fault.strike(operator))
        status = operator.run("status", "--json", "--timeout", str(DEADLINE_S))
        go_on()
        hindered, recovered, seconds = _recover(fault, moment, operator, lasting)
    text = str(ask(operator.lab)["content"]) if recovered.exit_code == 0 else ""
    return Ordeal(status, hindered, recovered, seconds, pids(operator) != before, text)


def _recover(
    fault: Fault, moment: Moment, operator: Operator, lasting: ExitStack
) -> tuple[Finished | None, Finished, float]:
    """What `recover` did while the fault lasted, if that was in vain, and at last; and how long that took."""
    began_s = time.monotonic()
    if fault.is_harmless and moment is Moment.LOADING and not fault.refusals:
        # It is waited for until it has loaded, which takes long as long as the fault lasts.
        with operator.running(*RECOVER) as recovering:
            recovering.wait_for("look at the nodes")
            lasting.close()
            return None, recovering.finish(), time.monotonic() - began_s
    first = operator.run(*RECOVER)
    if first.exit_code == 0:
        return None, first, time.monotonic() - began_s
    lasting.close()
    began_s = time.monotonic()
    return first, operator.run(*RECOVER), time.monotonic() - began_s


def pids(operator: Operator) -> Pids:
    """The cluster's programs on every node that has power."""
    return {
        name: frozenset(process.pid for process in node.processes() if process.argv[0].startswith("/opt/"))
        for name, node in operator.lab.nodes.items()
    }


@contextmanager
def _loading(operator: Operator) -> Iterator[Callable[[], None]]:
    right = operator.lab.nodes["right"]
    right.limit_link(LOADING_MBIT, ["private"])
    operator.succeed("up", "--replace", "--no-wait")
    try:
        yield lambda: right.restore_link(["private"])
    finally:
        right.restore_link(["private"])


@contextmanager
def _idle(operator: Operator) -> Iterator[Callable[[], None]]:
    operator.succeed("up")
    yield lambda: None


@contextmanager
def _generating(operator: Operator) -> Iterator[Callable[[], None]]:
    operator.succeed("up")
    with generating(operator.lab):
        yield lambda: None


MOMENTS: Mapping[Moment, Callable[[Operator], AbstractContextManager[Callable[[], None]]]] = {
    Moment.LOADING: _loading,
    Moment.IDLE: _idle,
    Moment.GENERATING: _generating,
}
