"""Proof that tokens come out of a head: its counters while it works, and one token asked for while it idles."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from clusterctl.cluster.head_api import HeadApi, traffic_of
from clusterctl.cluster.progress import DEADLINE_S, Motion, Track, Verdict
from clusterctl.llama.serving import Pulse, Slot, has_advanced
from clusterctl.reports import ProgressReport, TrafficReport


@dataclass(frozen=True, slots=True)
class Probed:
    """What one probe of a head found."""

    progress: ProgressReport
    traffic: TrafficReport


class Prober:
    """Probes one head again and again, and remembers between the looks.

    A token takes the place of what a slot holds of its last conversation; llama-server keeps that in memory and
    takes it back, but over a slow network this costs time. So a token is asked for only while the head idles, on
    a slot that nobody has used if there is one, and not again for `token_every_s`; `None` is never.
    """

    def __init__(self, deadline_s: float = DEADLINE_S, token_every_s: float | None = 0.0) -> None:
        self._deadline_s = deadline_s
        self._token_every_s = token_every_s
        self._track = Track()
        self._missing: str | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether a token is due that has not come."""
        return self._track.is_waiting

    async def probe(self, api: HeadApi, motion: Motion, *, may_ask: bool) -> Probed:
        """Look once; this takes as long as the deadline if a token is asked for and does not come.

        Without `may_ask` no token is asked for: a head whose worker is gone would end by it.
        """
        before, pulse = self._track.last, await api.pulse()
        if before is not None and has_advanced(before, pulse):
            self._missing = None
        self._track = self._track.seeing(pulse, motion)
        is_busy = pulse.is_idle is False
        traffic = traffic_of(pulse, before if is_busy else None)
        if may_ask and pulse.is_idle and self._token_is_due(pulse.at_s):
            return Probed(await self._ask_for_a_token(api, pulse), traffic)
        if self._missing is not None:
            return Probed(ProgressReport(Verdict.STUCK, self._missing), traffic)
        return Probed(ProgressReport(*self._track.verdict(pulse.at_s, self._deadline_s)), traffic)

    def _token_is_due(self, now_s: float) -> bool:
        if self._token_every_s is None:
            return False
        proven_at_s = self._track.proven_at_s
        return proven_at_s is None or now_s - proven_at_s >= self._token_every_s

    async def _ask_for_a_token(self, api: HeadApi, pulse: Pulse) -> ProgressReport:
        clock = asyncio.get_running_loop().time
        began_s = clock()
        missing = await api.completes(self._deadline_s, _unused(pulse.slots or ()))
        ended_s = clock()
        # Looked at whatever came: the averages begin anew, so that no later look takes our token for traffic.
        after = await api.pulse()
        # A client's request may have come first, and ours then waits its turn.
        if missing is None or has_advanced(pulse, after):
            self._missing = None
            self._track = self._track.proven(ended_s)
            return ProgressReport(Verdict.PROVEN, f"a token came within {ended_s - began_s:.1f} s")
        self._missing = f"asked for one token: {missing}"
        return ProgressReport(Verdict.STUCK, self._missing)


def _unused(slots: Iterable[Slot]) -> int | None:
    """A slot that holds no conversation; `None` leaves the choice to the head."""
    return next((slot.number for slot in slots if slot.task is None), None)
