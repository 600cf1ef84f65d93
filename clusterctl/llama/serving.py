"""What llama-server says of its work: `/health`, `/slots`, `/metrics`, and whether anything moved between looks.

A head whose worker hangs keeps saying `ok` on `/health`. While it waits, b10068 and b10092 say nothing on
`/slots`, but b10434 answers there as well: only its counters tell that nothing happens.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

_METRIC = re.compile(r"^llamacpp:(\w+) (\S+)$", re.MULTILINE)
# Counters of /metrics that grow with the work done, also in the midst of a request.
_COUNTERS = ("n_decode_total", "prompt_tokens_total", "tokens_predicted_total")


class Health(StrEnum):
    """What `/health` says: llama-server answers 503 while it loads and 200 once it is ready."""

    OK = "ok"
    LOADING = "loading"
    NO_ANSWER = "no answer"


@dataclass(frozen=True, slots=True)
class Slot:
    """One slot: the request it works on or last had, and how many tokens of it are done."""

    number: int
    is_busy: bool
    task: int | None = None
    prompt_tokens: int = 0
    decoded_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Pulse:
    """One look at a head, at `at_s` of a steady clock. `slots` is `None` where it does not tell.

    `answered` is whether it said anything at all in time.
    """

    at_s: float
    answered: bool
    slots: tuple[Slot, ...] | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)

    @property
    def tells(self) -> bool:
        """Whether there is anything in it to judge by: not without a key, nor where both are switched off."""
        return self.slots is not None or bool(self.metrics)

    @property
    def is_idle(self) -> bool | None:
        """Whether no request runs or waits; `None` if that is not known."""
        waiting = self.metrics.get("requests_deferred", 0)
        if self.slots is not None:
            return not waiting and not any(slot.is_busy for slot in self.slots)
        running = self.metrics.get("requests_processing")
        return None if running is None else not running and not waiting


def parse_slots(document: object) -> tuple[Slot, ...] | None:
    """Read the JSON of `/slots`; `None` if it is none."""
    if not isinstance(document, list):
        return None
    return tuple(_slot(row) for row in document if isinstance(row, dict))


def parse_metrics(text: str) -> dict[str, float]:
    """Read the Prometheus text of `/metrics` without its prefix; what is no finite number is left out."""
    found = {name: _float(value) for name, value in _METRIC.findall(text)}
    return {name: value for name, value in found.items() if value is not None}


def has_advanced(before: Pulse, after: Pulse) -> bool:
    """Whether the head has done any work between two looks."""
    if any(after.metrics.get(name, 0) > before.metrics.get(name, math.inf) for name in _COUNTERS):
        return True
    if before.slots is None or after.slots is None:
        return False
    earlier = {slot.number: slot for slot in before.slots}
    return any(slot.number in earlier and _moved(earlier[slot.number], slot) for slot in after.slots)


def decode_rate(before: Pulse, after: Pulse) -> float | None:
    """Return the tokens per second decoded between two looks; `None` if the slots do not tell."""
    if before.slots is None or after.slots is None or after.at_s <= before.at_s:
        return None
    earlier = {slot.number: slot for slot in before.slots}
    decoded = 0
    for slot in after.slots:
        then = earlier.get(slot.number)
        started_at = then.decoded_tokens if then and then.task == slot.task else 0
        decoded += max(0, slot.decoded_tokens - started_at)
    return decoded / (after.at_s - before.at_s)


def _moved(then: Slot, now: Slot) -> bool:
    if then.is_busy and (not now.is_busy or then.task != now.task):
        return True
    if then.task != now.task:
        # That a request was taken up says nothing of the workers: none of it may be computed yet.
        return now.decoded_tokens > 0
    return (now.prompt_tokens, now.decoded_tokens) != (then.prompt_tokens, then.decoded_tokens)


def _slot(row: Mapping[str, object]) -> Slot:
    generated = row.get("next_token")
    if isinstance(generated, list):
        generated = generated[0] if generated else None
    decoded = generated.get("n_decoded") if isinstance(generated, dict) else None
    return Slot(
        number=_count(row.get("id")),
        is_busy=bool(row.get("is_processing")),
        task=_count(row["id_task"]) if "id_task" in row else None,
        prompt_tokens=_count(row.get("n_prompt_tokens_processed")),
        decoded_tokens=_count(decoded),
    )


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _float(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
