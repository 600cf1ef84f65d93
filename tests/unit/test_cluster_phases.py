"""Phases: their order, and how they are undone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from clusterctl.cluster.phases import Phase, run_phases
from clusterctl.errors import StartFailed
from clusterctl.model import Outcome, Step

Context = tuple[str, ...]


class Recorder:
    """Phases that write down what becomes of them, and the steps that were told."""

    def __init__(self) -> None:
        self.undone: list[str] = []
        self.steps: list[tuple[str, Outcome]] = []

    def tell(self, step: Step) -> None:
        self.steps.append((step.title, step.outcome))

    def phase(
        self, title: str, run: Callable[[], Awaitable[None]] | None = None, undo: BaseException | None = None
    ) -> Phase[Context]:
        """A phase that adds its title to the context; `undo` is the error of its undo, if any."""

        async def do(context: Context) -> Context:
            if run:
                await run()
            return (*context, title)

        async def take_back(context: Context) -> None:
            if undo:
                raise undo
            self.undone.append(f"{title} after {' '.join(context) or 'nothing'}")

        return Phase(title, do, take_back)


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


async def fail() -> None:
    raise StartFailed("no", node="w1")


async def test_phases_run_in_order_and_hand_on_what_they_know(recorder: Recorder) -> None:
    phases = [recorder.phase(title) for title in ("a", "b", "c")]
    assert await run_phases(phases, (), recorder.tell) == ("a", "b", "c")
    assert recorder.undone == []
    assert recorder.steps == [(title, outcome) for title in "abc" for outcome in (Outcome.STARTED, Outcome.DONE)]


async def test_a_phase_that_is_not_needed_is_neither_run_nor_undone(recorder: Recorder) -> None:
    never = recorder.phase("never")
    skipped = Phase(never.title, never.run, never.undo, needed=lambda context: "a" not in context)
    phases = [recorder.phase("a"), skipped, recorder.phase("b", fail)]
    with pytest.raises(StartFailed):
        await run_phases(phases, (), recorder.tell)
    assert recorder.undone == ["b after a", "a after a"]
    assert "never" not in dict(recorder.steps)


async def test_a_failure_undoes_every_entered_phase_last_first(recorder: Recorder) -> None:
    phases = [recorder.phase("a"), recorder.phase("b"), recorder.phase("c", fail), recorder.phase("d")]
    with pytest.raises(StartFailed, match="w1: no"):
        await run_phases(phases, (), recorder.tell)
    assert recorder.undone == ["c after a b", "b after a b", "a after a b"]
    assert recorder.steps[-4:] == [
        ("c", Outcome.FAILED),
        ("c", Outcome.UNDONE),
        ("b", Outcome.UNDONE),
        ("a", Outcome.UNDONE),
    ]


async def test_a_phase_without_an_undo_is_passed_over(recorder: Recorder) -> None:
    looking = recorder.phase("look")
    with pytest.raises(StartFailed):
        await run_phases([Phase("look", looking.run), recorder.phase("b", fail)], (), recorder.tell)
    assert recorder.undone == ["b after look"]
    assert ("look", Outcome.UNDONE) not in recorder.steps


async def test_an_undo_that_fails_is_noted_and_the_others_still_run(recorder: Recorder) -> None:
    stuck = StartFailed("it does not end", node="w2")
    phases = [recorder.phase("a"), recorder.phase("b", undo=stuck), recorder.phase("c", fail)]
    with pytest.raises(StartFailed, match="w1: no") as caught:
        await run_phases(phases, (), recorder.tell)
    assert recorder.undone == ["c after a b", "a after a b"]
    assert caught.value.__notes__ == ["could not undo `b`: w2: it does not end"]


@pytest.mark.parametrize("odd", [OSError(24, "Too many open files"), ValueError("no number")])
async def test_an_undo_that_fails_as_nobody_foresaw_is_noted_too(recorder: Recorder, odd: Exception) -> None:
    phases = [recorder.phase("a"), recorder.phase("b", undo=odd), recorder.phase("c", fail)]
    with pytest.raises(StartFailed, match="w1: no") as caught:
        await run_phases(phases, (), recorder.tell)
    assert recorder.undone == ["c after a b", "a after a b"]
    assert caught.value.__notes__ == [f"could not undo `b`: {odd!r}"]


async def test_an_interrupt_undoes_too(recorder: Recorder) -> None:
    entered = asyncio.Event()

    async def wait() -> None:
        entered.set()
        await asyncio.Event().wait()

    phases = [recorder.phase("a"), recorder.phase("b", wait), recorder.phase("c")]
    running = asyncio.create_task(run_phases(phases, (), recorder.tell))
    await entered.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await running
    assert recorder.undone == ["b after a", "a after a"]
    assert ("interrupted", Outcome.WARNING) in recorder.steps
    assert caught.value.__notes__ == ["what was started has been undone"]


async def interrupt() -> None:
    raise asyncio.CancelledError


async def test_an_interrupt_before_anything_was_started_says_so(recorder: Recorder) -> None:
    looking = recorder.phase("look", interrupt)
    with pytest.raises(asyncio.CancelledError) as caught:
        await run_phases([Phase("look", looking.run)], (), recorder.tell)
    assert caught.value.__notes__ == ["nothing had been started"]


async def test_an_interrupt_whose_undo_fails_claims_no_undoing(recorder: Recorder) -> None:
    phases = [recorder.phase("a", undo=StartFailed("stuck", node="w2")), recorder.phase("b", interrupt)]
    with pytest.raises(asyncio.CancelledError) as caught:
        await run_phases(phases, (), recorder.tell)
    assert caught.value.__notes__ == ["could not undo `a`: w2: stuck"]


async def test_a_dry_run_tells_what_would_be_done_as_not_done(recorder: Recorder) -> None:
    phases = [Phase("look", recorder.phase("look").run), recorder.phase("start")]
    await run_phases(phases, (), recorder.tell, dry=True)
    assert recorder.steps[1::2] == [("look", Outcome.DONE), ("start", Outcome.WOULD)]


async def test_a_second_interrupt_says_what_was_not_undone(recorder: Recorder) -> None:
    phases = [
        recorder.phase("a"),
        recorder.phase("b", undo=asyncio.CancelledError()),
        recorder.phase("c", fail),
    ]
    with pytest.raises(StartFailed) as caught:
        await run_phases(phases, (), recorder.tell)
    assert recorder.undone == ["c after a b"]
    (note,) = caught.value.__notes__
    assert "`b`, `a`" in note
    assert "clusterctl down" in note


async def test_a_fault_of_our_own_undoes_as_well(recorder: Recorder) -> None:
    async def crash() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await run_phases([recorder.phase("a"), recorder.phase("b", crash)], (), recorder.tell)
    assert recorder.undone == ["b after a", "a after a"]
