"""The least changes that make a model fit. Every one is tried: what is promised has been found to fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from clusterctl.errors import UsageError
from clusterctl.model import Offer, Workload
from clusterctl.planning.assignment import fits_at_all
from clusterctl.planning.data_sheets import unknown_bandwidth_gb_s
from clusterctl.planning.kv_cache import cache_type
from clusterctl.planning.memory import MemoryModel
from clusterctl.planning.slot_ranges import SlotRanges
from clusterctl.planning.token_time import TokenTime
from clusterctl.planning.wording import GIB, gib

CONTEXT_STEP = 1024
LEAST_MICRO_BATCH = 32
SMALLER_CACHE = "q8_0"
SMALLER_CACHE_KEY = f"kv_cache: {{k: {SMALLER_CACHE}, v: {SMALLER_CACHE}}}"
# For counting bytes per value; any whole number of blocks of all types will do.
VALUES = 256

Fits = Callable[[MemoryModel], bool]


class Remedies:
    """Changes of one kind each, to the recipe or to the machines, for a model that does not fit."""

    def __init__(self, ranges: SlotRanges, offers: Sequence[Offer], fits: Fits | None = None) -> None:
        """`fits` plans a changed workload; without it, the offers are taken to stay as they are."""
        self.ranges = ranges
        self.memory = ranges.model
        self.header = ranges.model.header
        self.workload = ranges.model.workload
        self.offers = offers
        self._fits_anew = fits or self._fits_the_offers

    def __iter__(self) -> Iterator[str]:
        """Yield every change that makes it fit, in words of the recipe."""
        if (context := self.context()) is not None:
            yield f"context: {context}"
        smaller = with_smaller_cache(self.memory)
        if smaller is not None and self._fits_anew(smaller):
            yield SMALLER_CACHE_KEY
        yield from self._fewer_slots()
        yield from self._smaller_batch()
        yield from self._fewer_layers_on_the_cpu()
        yield from self._layers_on_the_cpu()
        if self.offers:
            yield from self._more_memory()

    def context(self) -> int | None:
        """The longest shorter context that fits, in whole steps."""
        steps = (self.workload.context - 1) // CONTEXT_STEP
        fewer = least(range(steps), lambda fewer: self._fits(self._with_context(steps - fewer)))
        return None if fewer is None else (steps - fewer) * CONTEXT_STEP

    def _with_context(self, steps: int) -> Workload:
        return replace(self.workload, context=steps * CONTEXT_STEP)

    def _fewer_slots(self) -> Iterator[str]:
        for slots in halves(self.workload.slots, 1):
            if self._fits(replace(self.workload, slots=slots)):
                yield f"parallel: {slots}"
                return

    def _smaller_batch(self) -> Iterator[str]:
        for batch in halves(self.workload.batch_physical, LEAST_MICRO_BATCH):
            if self._fits(replace(self.workload, batch_physical=batch)):
                yield f"batch: {{physical: {batch}}}"
                return

    def _fewer_layers_on_the_cpu(self) -> Iterator[str]:
        if self.offers:
            for layers in reversed(range(self.workload.cpu_layers)):
                if self._fits(replace(self.workload, cpu_layers=layers)):
                    yield f"split: {{cpu_layers: {layers}}}"
                    return

    def _layers_on_the_cpu(self) -> Iterator[str]:
        present = self.workload.cpu_layers
        more = range(present + 1, self.header.n_layer + 1)
        layers = least(more, lambda count: self._fits(replace(self.workload, cpu_layers=count)))
        if layers is None:
            return
        moved = replace(self.workload, cpu_layers=layers)
        memory = MemoryModel(self.header, moved)
        time = TokenTime(memory, depth_tokens=0)
        slower_ms = 1e3 * time.reading_s(unknown_bandwidth_gb_s("cpu"), present, layers)
        host = gib(memory.host_memory(pipelined=False).total_bytes)
        yield f"split: {{cpu_layers: {layers}}} ({host} of the head's memory, about {slower_ms:.0f} ms per token)"

    def _more_memory(self) -> Iterator[str]:
        largest = max(range(len(self.offers)), key=lambda index: self.offers[index].budget_bytes)
        offer = self.offers[largest]

        def fits(added_gib: int) -> bool:
            larger = replace(offer, budget_bytes=offer.budget_bytes + added_gib * GIB)
            offers = [*self.offers[:largest], larger, *self.offers[largest + 1 :]]
            return fits_at_all(self.ranges, offers)

        # Twice the model and its cache is more than any device could want for it.
        whole = self.memory.device_memory(0, self.header.n_layer + 1, pipelined=True)
        added_gib = least(range(1, 2 * whole.total_bytes // GIB + 3), fits)
        if added_gib is not None:
            yield f"{added_gib} GiB more on {offer.label}"

    def _fits(self, workload: Workload) -> bool:
        return self._fits_anew(MemoryModel(self.header, workload))

    def _fits_the_offers(self, memory: MemoryModel) -> bool:
        return fits_at_all(SlotRanges(memory, self.ranges.host_budget_bytes), self.offers)


def with_smaller_cache(memory: MemoryModel) -> MemoryModel | None:
    """The same with a KV cache of 8 bits; `None` if it is no larger now, or llama.cpp would not take that.

    Quantized values need flash attention (llama.cpp src/llama-context.cpp), and rows of whole blocks.
    """
    workload = memory.workload
    smaller = cache_type(SMALLER_CACHE).row_bytes(VALUES)
    kinds = (workload.kv_type_k, workload.kv_type_v)
    if not workload.flash_attention or any(cache_type(kind).row_bytes(VALUES) <= smaller for kind in kinds):
        return None
    try:
        return MemoryModel(memory.header, replace(workload, kv_type_k=SMALLER_CACHE, kv_type_v=SMALLER_CACHE))
    except UsageError:
        return None


def least(values: range, holds: Callable[[int], bool]) -> int | None:
    """The first of the values from which on something holds, `None` if it does not hold for the last one."""
    if not values or not holds(values[-1]):
        return None
    low, high = 0, len(values) - 1
    while low < high:
        middle = (low + high) // 2
        if holds(values[middle]):
            high = middle
        else:
            low = middle + 1
    return values[low]


def halves(value: int, lowest: int) -> Iterator[int]:
    """Yield half of the value, half of that, and so on, none below `lowest`."""
    while (value := value // 2) >= lowest:
        yield value
