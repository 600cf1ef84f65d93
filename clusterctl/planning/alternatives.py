"""Other ways to serve the same model on the same machines that are expected to be faster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from clusterctl.model import Advice, Offer, Split
from clusterctl.planning.assignment import fits_at_all
from clusterctl.planning.estimate import decode_tok_s
from clusterctl.planning.memory import MemoryModel
from clusterctl.planning.remedies import SMALLER_CACHE_KEY, Remedies, with_smaller_cache
from clusterctl.planning.slot_ranges import SlotRanges
from clusterctl.planning.split import choose_split

# Less is within what an estimate can't tell.
WORTHWHILE = 1.1
# A context shorter than this part of what was asked for is no alternative.
USEFUL_CONTEXT = 4


class Alternatives:
    """Compares a split with what else could be done."""

    def __init__(
        self,
        memory: MemoryModel,
        split: Split,
        offers: Sequence[Offer],
        expected_tok_s: float,
        *,
        host_budget_bytes: int | None,
    ) -> None:
        self.memory = memory
        self.split = split
        self.offers = offers
        self.expected_tok_s = expected_tok_s
        self.host_budget_bytes = host_budget_bytes

    def advice(self) -> Iterator[Advice]:
        """Yield what is worthwhile first: one node alone, as it is or with less cache, or else another split."""
        if len({share.offer.node for share in self.split.shares}) > 1:
            for code, change, memory in self._less_cache():
                best = self._best_node(memory)
                if best is not None:
                    node, tok_s = best
                    yield Advice(
                        code,
                        f"{change}{node} alone can hold the model and is expected to decode "
                        f"{self._instead(tok_s)} tok/s; sharing it only costs time",
                    )
                    return
        if self.split.strategy != "speed" and (better := self._faster(self.memory, self.offers)):
            yield Advice(
                "faster-split",
                f"`split: {{strategy: speed}}` is expected to decode {self._instead(better)} tok/s",
            )

    def _less_cache(self) -> Iterator[tuple[str, str, MemoryModel]]:
        """Yield the workload as it is and with less cache; each with a code and in words what is changed."""
        header, workload = self.memory.header, self.memory.workload
        yield "fits-on-one-node", "", self.memory
        if (smaller := with_smaller_cache(self.memory)) is not None:
            yield "q8-cache", f"with `{SMALLER_CACHE_KEY}` ", smaller
        ranges = SlotRanges(self.memory, self.host_budget_bytes)
        contexts = [Remedies(ranges, offers).context() or 0 for offers in _by_node(self.offers).values()]
        context = max(contexts, default=0)
        if context * USEFUL_CONTEXT >= workload.context:
            shorter = replace(workload, context=context)
            yield "smaller-context", f"with `context: {context}` ", MemoryModel(header, shorter)

    def _best_node(self, memory: MemoryModel) -> tuple[str, float] | None:
        """The node that alone decodes fastest, if that is worthwhile."""
        alone = {
            node: tok_s
            for node, offers in _by_node(self.offers).items()
            if (tok_s := self._faster(memory, offers)) is not None
        }
        return max(alone.items(), key=lambda item: item[1], default=None)

    def _faster(self, memory: MemoryModel, offers: Sequence[Offer]) -> float | None:
        """The speed of the fastest split on these devices, `None` if none fits or it is not worthwhile."""
        if not fits_at_all(SlotRanges(memory, self.host_budget_bytes), offers):
            return None
        split = choose_split(memory, offers, "speed", host_budget_bytes=self.host_budget_bytes)
        tok_s = decode_tok_s(memory, split)
        return tok_s if tok_s >= WORTHWHILE * self.expected_tok_s else None

    def _instead(self, tok_s: float) -> str:
        return f"{tok_s:.1f} instead of {self.expected_tok_s:.1f}"


def _by_node(offers: Sequence[Offer]) -> Mapping[str, list[Offer]]:
    nodes: dict[str, list[Offer]] = {}
    for offer in offers:
        nodes.setdefault(offer.node, []).append(offer)
    return nodes
