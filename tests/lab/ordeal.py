"""One fault at one moment: what `status` says of it, and what becomes of the cluster by `recover`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.lab.faults import Fault, Moment
from tests.lab.generation import generating
from tests.lab.lab import Lab
from tests.lab.operator import Finished, Operator, operator_of
from tests.lab.test_serving import ask

# At this rate the model takes minutes, so that whatever is done is done while it loads.
LOADING_MBIT = 2
CONNECT_TIMEOUT_S = 2
TOKEN_DEADLINE_S = 4
STATUS = ("status", "--timeout", str(TOKEN_DEADLINE_S), "--json")
LIMITS = ("--token-timeout", str(TOKEN_DEADLINE_S), "--stall-timeout", "6", "--restarts", "1")
RECOVER = ("recover", *LIMITS, "--json")


@dataclass(frozen=True, slots=True)
class Ordeal:
    """What was seen of a fault.

    `status` is of the time while it lasted; so is `hindered`, a `recover` that was in vain then, if it was.
    `recovered` is the one that was not, and took `seconds`. `was_touched`: a program of the cluster is another
    now. `text` is what the cluster answers in the end.
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

    def complaints(self, fault: Fault, moment: Moment, text: str) -> list[str]:
        """What is not as it should be; `text` is what the cluster answered before."""
        codes, refusals = fault.codes[moment], fault.refusals
        checks = {
            f"status names {set(self.codes)}, not {set(codes)}": bool(self.codes & codes) or self.codes == codes,
            f"recover was hindered: {self.hindered}": self.hindered is None or self.hindered.exit_code in refusals,
            f"recover failed: {self.recovered}": self.recovered.exit_code == 0,
            f"programs of the cluster were replaced: {self.was_touched}": self.was_touched != fault.is_harmless,
            f"it answers {self.text!r}": self.text == text,
        }
        return [complaint for complaint, is_well in checks.items() if not is_well]


def hasty_operator(lab: Lab, folder: Path) -> Operator:
    """An operator of a head and the workers `left` and `right` who does not wait long for a lost node."""
    operator = operator_of(lab, folder, workers=["left", "right"])
    hasty = {**operator.inventory["defaults"], "ssh": {"connect_timeout": CONNECT_TIMEOUT_S}}
    return operator.with_inventory({**operator.inventory, "defaults": hasty})


def endure(fault: Fault, moment: Moment, operator: Operator) -> Ordeal:
    """Let a fault strike a cluster at a moment, and bring it back; it serves at the end if that could be done."""
    with MOMENTS[moment](operator) as hurry, ExitStack() as lasting:
        before = programs(operator)
        lasting.enter_context(fault.strike(operator))
        status = operator.run(*STATUS)
        hurry()
        hindered, recovered, seconds = _recover(operator, lasting)
    text = str(ask(operator.lab)["content"]) if recovered.exit_code == 0 else ""
    return Ordeal(status, hindered, recovered, seconds, programs(operator) != before, text)


def _recover(operator: Operator, lasting: ExitStack) -> tuple[Finished | None, Finished, float]:
    """A `recover` that was in vain while the fault lasted, if it was; the last one, and how long that took."""
    began_s = time.monotonic()
    first = operator.run(*RECOVER)
    if first.exit_code == 0:
        return None, first, time.monotonic() - began_s
    lasting.close()
    began_s = time.monotonic()
    return first, operator.run(*RECOVER), time.monotonic() - began_s


def programs(operator: Operator) -> Mapping[str, frozenset[int]]:
    """The pids of the cluster's programs on every node."""
    return {
        name: frozenset(process.pid for process in node.processes() if process.argv[0].startswith("/opt/"))
        for name, node in operator.lab.nodes.items()
    }


@contextmanager
def _loading(operator: Operator) -> Iterator[Callable[[], None]]:
    right = operator.lab.nodes["right"]
    right.limit_link(LOADING_MBIT, ["private"])
    try:
        operator.succeed("up", "--replace", "--no-wait")
        yield lambda: right.restore_link(["private"])
    finally:
        right.restore_link(["private"])


def demand_up(operator: Operator) -> None:
    """Bring the cluster up, unless the test before has left it so."""
    if not all(programs(operator).values()):
        operator.succeed("up", "--replace")


@contextmanager
def _idle(operator: Operator) -> Iterator[Callable[[], None]]:
    demand_up(operator)
    yield lambda: None


@contextmanager
def _generating(operator: Operator) -> Iterator[Callable[[], None]]:
    demand_up(operator)
    with generating(operator.lab):
        yield lambda: None


# Each brings the cluster up to a moment, and yields what lets a load go on at full speed.
MOMENTS: Mapping[Moment, Callable[[Operator], AbstractContextManager[Callable[[], None]]]] = {
    Moment.LOADING: _loading,
    Moment.IDLE: _idle,
    Moment.GENERATING: _generating,
}
