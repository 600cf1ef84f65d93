"""Which ranges of slots a device can hold, with everything that must lie in its memory beside them."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.model import Memory, Offer
from clusterctl.planning.margins import margin_bytes
from clusterctl.planning.memory import MemoryModel, is_pipelined


class SlotRanges:
    """The slots of one model that go to devices: from `first` up to, not including, `end`.

    How many devices share the model decides what each of them needs (pipelining). A range of all slots leaves
    nothing for a second device, and any other range has one beside it: so the range alone tells.
    """

    def __init__(self, memory: MemoryModel, host_budget_bytes: int | None = None) -> None:
        self.model = memory
        self.first = memory.workload.cpu_layers
        self.end = memory.header.n_layer + 1
        self.host_budget_bytes = host_budget_bytes
        self._known: dict[tuple[int, int], Memory] = {}
        self._host_fits = {is_whole: self.host_suffices(is_whole=is_whole) for is_whole in (False, True)}

    @property
    def count(self) -> int:
        """Number of slots to be placed on devices."""
        return self.end - self.first

    def memory(self, first: int, end: int) -> Memory:
        """What a device with the slots `first` to `end - 1` allocates."""
        key = (first, end)
        if key not in self._known:
            pipelined = self._is_pipelined(self._is_whole(first, end))
            self._known[key] = self.model.device_memory(first, end, pipelined=pipelined)
        return self._known[key]

    def host(self, *, devices: int) -> Memory:
        """What the head's own memory holds when so many devices share the slots."""
        return self.model.host_memory(pipelined=self._is_pipelined(devices == 1))

    def host_suffices(self, *, is_whole: bool) -> bool:
        """Whether the head's own memory holds its part, with all slots on one device or on several."""
        host = self.model.host_memory(pipelined=self._is_pipelined(is_whole))
        return self.host_budget_bytes is None or host.total_bytes <= self.host_budget_bytes

    def need_bytes(self, offer: Offer, first: int, end: int) -> int:
        """Bytes that must be free on a device for this range: its memory and its backend's margin."""
        memory = self.memory(first, end)
        return memory.total_bytes + margin_bytes(offer.backend, memory.compute_bytes)

    def fits(self, offer: Offer, first: int, end: int) -> bool:
        """Whether the device can hold this range, and the head's memory what this leaves to it."""
        return (
            self._host_fits[self._is_whole(first, end)]
            and self.need_bytes(offer, first, end) <= offer.budget_bytes
        )

    def can_take_part(self, offer: Offer) -> bool:
        """Whether the device has room for any single slot."""
        return self.least_need_bytes(offer) <= offer.budget_bytes

    def least_need_bytes(self, offer: Offer) -> int:
        """Bytes that must be free on a device for it to take any part."""
        return min(self.need_bytes(offer, slot, slot + 1) for slot in range(self.first, self.end))

    def buffer_bytes(self, offer: Offer) -> int:
        """The most that a device which shares the model needs beside its layers and their KV cache."""
        pipelined = self._is_pipelined(is_whole=False)
        compute = self.model.device_memory(self.first, self.end, pipelined=pipelined).compute_bytes
        return self.model.header.shared_bytes + compute + margin_bytes(offer.backend, compute)

    def room_bytes(self, offer: Offer) -> int:
        """What a device that shares the model has left for layers and their KV cache."""
        return max(0, offer.budget_bytes - self.buffer_bytes(offer))

    def starts(self, offer: Offer) -> Iterator[tuple[int, bool]]:
        """For each boundary between slots, what ranges that end there the device can hold. Counts from `first`.

        The number is the lowest start after 0 from which the range fits, or the end itself; all higher ones
        fit too, for a longer range never needs less. The flag says whether the range from 0 on fits. Buffers
        of the device with slot `first` and of that with the output layer follow rules of their own, so what
        fits without them says nothing of these.
        """
        yield 1, False
        lowest = self.first + 1
        for end in range(self.first + 1, self.end + 1):
            if end == self.end:
                lowest = self.first + 1
            while lowest < end and not self.fits(offer, lowest, end):
                lowest += 1
            yield lowest - self.first, self.fits(offer, self.first, end)

    def _is_whole(self, first: int, end: int) -> bool:
        return first == self.first and end == self.end

    def _is_pipelined(self, is_whole: bool) -> bool:
        return is_pipelined(1 if is_whole else 2, self.first)
