"""How often a broken cluster may be brought back before a human must look. Pure."""

from __future__ import annotations

from dataclasses import dataclass

FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0


@dataclass(frozen=True, slots=True)
class Budget:
    """At most `restarts` within `window_s`; a node that breaks twice within `fast_s` of a restart ends it."""

    restarts: int = 5
    window_s: float = 3600.0
    fast_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Restart:
    """A restart, when it began (in seconds of any steady clock), and the node that had broken."""

    at_s: float
    culprit: str


@dataclass(frozen=True, slots=True)
class History:
    """All restarts so far, oldest first."""

    restarts: tuple[Restart, ...] = ()

    def with_restart(self, at_s: float, culprit: str) -> History:
        """The history with one restart more."""
        return History((*self.restarts, Restart(at_s, culprit)))

    def refusal(self, budget: Budget, now_s: float, culprit: str) -> str | None:
        """Why another restart for `culprit` makes no sense, or `None` if it may be tried."""
        if self._broke_fast_twice(budget, now_s, culprit):
            return f"{culprit} broke twice within {budget.fast_s:g} s of a restart"
        recent = [restart for restart in self.restarts if restart.at_s > now_s - budget.window_s]
        if len(recent) >= budget.restarts:
            return f"{len(recent)} restarts within {budget.window_s / 60:g} min did not help"
        return None

    def pause_s(self, budget: Budget, now_s: float) -> float:
        """Seconds to wait before the next restart: doubled for each recent one."""
        recent = sum(restart.at_s > now_s - budget.window_s for restart in self.restarts)
        return 0.0 if recent == 0 else min(FIRST_PAUSE_S * 2.0 ** (recent - 1), LONGEST_PAUSE_S)

    def _broke_fast_twice(self, budget: Budget, now_s: float, culprit: str) -> bool:
        """Two restarts for the same node, each soon after the one before, and now broken soon again."""
        times = [restart.at_s for restart in self.restarts if restart.culprit == culprit]
        return (
            len(times) >= 2 and now_s - times[-1] <= budget.fast_s and times[-1] - times[-2] <= 2 * budget.fast_s
        )
