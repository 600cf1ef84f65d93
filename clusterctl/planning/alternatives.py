"""Other ways to serve the same model on the same machines that are expected to be faster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from clusterctl.model import Advice, Offer, Split
from clusterctl.planning.assignment import fits_at_all
from clusterctl.planning.estimate import decode_tok_s
from clusterctl.planning.memory import MemoryModel
from clusterctl.planning.remedies import SMALLER_CACHE, Remedies
from clusterctl.planning.slot_ranges import SlotRanges
from clusterctl.planning.split import choose_split
from clusterctl.planning.token_time import Link

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
        link: Link,
        host_budget_bytes: int | None,
    ) -> None:
        self.memory = memory
        self.split = split
        self.offers = offers
        self.expected_tok_s = expected_tok_s
        self.link = link
        self.host_budget_bytes = host_budget_bytes

    def advice(self) -> Iterator[Advice]:
        """Yield the first of these that is worthwhile: one node alone, one node with less cache, another split."""
        if len({share.offer.node for share in self.split.shares}) > 1:
            found = self._one_node() or self._one_node_smaller_cache() or self._one_node_shorter_context()
            if found is not None:
                yield found
                return
        if self.split.strategy != "speed" and (better := self._faster(self.memory, self.offers)):
            yield Advice(
                "faster-split",
                f"`split: {{strategy: speed}}` is expected to decode {self._instead(better)} tok/s",
            )

    def _one_node(self) -> Advice | None:
        best = self._best_node(self.memory)
        if best is None:
            return None
        node, tok_s = best
        return Advice(
            "fits-on-one-node",
            f"{node} alone can hold the model and is expected to decode {self._instead(tok_s)} tok/s; "
            "sharing it with other nodes only costs time",
        )

    def _one_node_smaller_cache(self) -> Advice | None:
        if not Remedies(SlotRanges(self.memory, self.host_budget_bytes), self.offers).smaller_cache_fits():
            return None
        workload = replace(self.memory.workload, kv_type_k=SMALLER_CACHE, kv_type_v=SMALLER_CACHE)
        best = self._best_node(MemoryModel(self.memory.header, workload))
        if best is None:
            return None
        node, tok_s = best
        return Advice(
            "q8-cache",
            f"with `kv_cache: {{k: {SMALLER_CACHE}, v: {SMALLER_CACHE}}}` {node} alone could hold the model "
            f"and decode {self._instead(tok_s)} tok/s",
        )

    def _one_node_shorter_context(self) -> Advice | None:
        ranges = SlotRanges(self.memory, self.host_budget_bytes)
        contexts = {
            node: context
            for node, offers in _by_node(self.offers).items()
            if (context := Remedies(ranges, offers).context()) is not None
        }
        context = max(contexts.values(), default=0)
        if context * USEFUL_CONTEXT < self.memory.workload.context:
            return None
        best = self._best_node(MemoryModel(self.memory.header, replace(self.memory.workload, context=context)))
        if best is None:
            return None
        node, tok_s = best
        return Advice(
            "smaller-context",
            f"with `context: {context}` {node} alone could hold the model and decode {self._instead(tok_s)} tok/s",
        )

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
        split = choose_split(memory, offers, "speed", host_budget_bytes=self.host_budget_bytes, link=self.link)
        tok_s = decode_tok_s(memory, split, self.link)
        return tok_s if tok_s >= WORTHWHILE * self.expected_tok_s else None

    def _instead(self, tok_s: float) -> str:
        return f"{tok_s:.1f} instead of {self.expected_tok_s:.1f}"


def _by_node(offers: Sequence[Offer]) -> Mapping[str, list[Offer]]:
    nodes: dict[str, list[Offer]] = {}
    for offer in offers:
        nodes.setdefault(offer.node, []).append(offer)
    return nodes
