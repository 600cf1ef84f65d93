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
    """A restart: when the cluster was found broken, when the restart had ended, and the node that had broken.

    Times are seconds of one steady clock. A restart that failed has ended as well.
    """

    broke_s: float
    ended_s: float
    culprit: str


@dataclass(frozen=True, slots=True)
class History:
    """All restarts so far, oldest first."""

    restarts: tuple[Restart, ...] = ()

    def with_restart(self, restart: Restart) -> History:
        """The history with one restart more."""
        return History((*self.restarts, restart))

    def refusal(self, budget: Budget, broke_s: float, culprit: str) -> str | None:
        """Why another restart for `culprit` makes no sense, or `None` if it may be tried."""
        if self._broke_fast_twice(budget, broke_s, culprit):
            return f"{culprit} broke twice within {budget.fast_s:g} s of a restart"
        if (recent := self._recent(budget, broke_s)) >= budget.restarts:
            return f"brought back {recent} times within {budget.window_s / 60:g} min already"
        return None

    def pause_s(self, budget: Budget, now_s: float) -> float:
        """Seconds to wait before the next restart: doubled for each recent one."""
        recent = self._recent(budget, now_s)
        return 0.0 if recent == 0 else min(FIRST_PAUSE_S * 2.0 ** (recent - 1), LONGEST_PAUSE_S)

    def _recent(self, budget: Budget, now_s: float) -> int:
        return sum(restart.ended_s > now_s - budget.window_s for restart in self.restarts)

    def _broke_fast_twice(self, budget: Budget, broke_s: float, culprit: str) -> bool:
        """Whether the same node has broken soon after the last restart, and soon after the one before."""
        if len(self.restarts) < 2:
            return False
        before, last = self.restarts[-2:]
        is_fast = broke_s - last.ended_s <= budget.fast_s and last.broke_s - before.ended_s <= budget.fast_s
        return is_fast and last.culprit == culprit
