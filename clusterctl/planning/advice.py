"""What the reader of a plan should know: what would be faster, what is slow and why, what was guessed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from math import inf

from clusterctl.model import Advice, Estimate, Offer, Share, Split
from clusterctl.planning.alternatives import Alternatives
from clusterctl.planning.bandwidth import bandwidth_gb_s, is_unified, known_bandwidth_gb_s
from clusterctl.planning.estimate import host_s, sending_s, slot_bounds, time_parts
from clusterctl.planning.memory import MemoryModel
from clusterctl.planning.token_time import TokenTime
from clusterctl.planning.wording import gib

# From which part of a token's time on something is worth a remark.
REMARKABLE = 0.3
BUSIEST = 0.65
SLOW_TOK_S = 15
LONG_SENDING_S = 60
MAPPING_MODES = frozenset({"auto", "mmap"})


@dataclass(frozen=True, slots=True)
class _Case:
    """What is to be judged; `token_s` is infinite where no speed is known."""

    memory: MemoryModel
    split: Split
    offers: Sequence[Offer]
    token_s: float
    load_mode: str
    has_draft: bool
    host_budget_bytes: int | None

    @property
    def time(self) -> TokenTime:
        return TokenTime(self.memory, depth_tokens=0)

    @property
    def remote(self) -> list[Share]:
        return [share for share in self.split.shares if not share.offer.is_local]


def advise(
    memory: MemoryModel,
    split: Split,
    offers: Sequence[Offer],
    expected: Estimate,
    *,
    load_mode: str = "auto",
    has_draft: bool = False,
    host_budget_bytes: int | None = None,
) -> tuple[Advice, ...]:
    """All remarks on a plan, most useful first. The codes are stable, the words are not.

    `offers` are all devices that could take part, `expected` is the estimate of this split, `load_mode` and
    `has_draft` are the recipe's.
    """
    token_s = 1 / expected.decode_tok_s if expected.decode_tok_s else inf
    case = _Case(memory, split, offers, token_s, load_mode, has_draft, host_budget_bytes)
    rules = RULES if token_s == inf else (*RULES_OF_SPEED, *RULES)
    return tuple(chain.from_iterable(rule(case) for rule in rules))


def _alternatives(case: _Case) -> Iterator[Advice]:
    if case.split.shares:
        yield from Alternatives(
            case.memory,
            case.split,
            case.offers,
            1 / case.token_s,
            host_budget_bytes=case.host_budget_bytes,
        ).advice()


def _cpu_layers(case: _Case) -> Iterator[Advice]:
    layers = min(case.split.cpu_layers, case.split.n_layer)
    if layers:
        part = _of(host_s(case.split, case.time), case.token_s)
        yield Advice("cpu-layers", f"the {layers} layers on the head's CPU take {part} per token")


def _load_mode(case: _Case) -> Iterator[Advice]:
    """llama.cpp issue 19745: pages of a mapped file are counted beside the copy in the same memory."""
    shared = [share.offer for share in case.split.shares if share.offer.is_local and is_unified(share.offer)]
    if shared and case.load_mode in MAPPING_MODES:
        yield Advice(
            "load-mode",
            f"{shared[0].label} shares its memory with the CPU, so a mapped model file takes memory twice "
            "while it loads: set `load_mode: dio`, or `none`",
        )


def _network_bound(case: _Case) -> Iterator[Advice]:
    hops_s = sum(case.time.hop_s(share.offer.link) for share in case.remote)
    if hops_s > REMARKABLE * case.token_s:
        count = len(case.remote)
        yield Advice(
            "network-bound",
            f"handing over to {count} remote device{'' if count == 1 else 's'} takes "
            f"{_of(hops_s, case.token_s)} per token; fewer of them, or RDMA, would help",
        )


def _slow_link(case: _Case) -> Iterator[Advice]:
    seconds = sending_s(case.split)
    if seconds is not None and seconds > LONG_SENDING_S:
        sent = sum(share.memory.model_bytes for share in case.remote)
        yield Advice(
            "slow-link",
            f"each start sends {gib(sent)} to the workers, about {seconds / 60:.0f} min; "
            "`rpc: {cache: true}` spares a worker this from the second start on",
        )


def _draft_pays(case: _Case) -> Iterator[Advice]:
    """Published: Llama 3.3 70B on four cards over Wi-Fi, 2.2 tok/s alone and 4.1 with a draft model."""
    is_dense = not case.memory.header.n_expert
    if case.remote and is_dense and not case.has_draft and case.token_s > 1 / SLOW_TOK_S:
        yield Advice(
            "draft-pays",
            "a small model of the same family as `draft` lets one pass through all devices check several "
            "tokens; published gains are up to 1.9 times the speed",
        )


def _long_context(case: _Case) -> Iterator[Advice]:
    cells = case.memory.shape.cells
    full = TokenTime(case.memory, cells)
    full_s = sum(part.seconds for part in time_parts(case.split, full))
    if full_s > (1 + REMARKABLE) * case.token_s:
        yield Advice(
            "long-context",
            f"with {cells} tokens of context in use, decoding falls to about {1 / full_s:.1f} tok/s",
        )


def _imbalanced(case: _Case) -> Iterator[Advice]:
    if len(case.split.shares) < 2:
        return
    busy = {
        share.offer.label: case.time.reading_s(bandwidth_gb_s(share.offer), *slot_bounds(case.split, share))
        for share in case.split.shares
    }
    label, seconds = max(busy.items(), key=lambda item: item[1])
    if seconds > BUSIEST * case.token_s:
        yield Advice(
            "imbalanced",
            f"{label} is busy for {_of(seconds, case.token_s)} of a token, and the other devices wait: "
            "a token passes them one after another",
        )


def _unused_nodes(case: _Case) -> Iterator[Advice]:
    used = {share.offer.node for share in case.split.shares}
    unused = dict.fromkeys(offer.node for offer in case.offers if offer.node not in used and not offer.is_local)
    if unused:
        yield Advice("unused-nodes", f"nothing is started on {', '.join(unused)}: no layer goes there")


def _unknown_bandwidth(case: _Case) -> Iterator[Advice]:
    guessed = [
        f"{offer.label} ({offer.description or 'no description'}) with {bandwidth_gb_s(offer):g} GB/s"
        for offer in case.offers
        if known_bandwidth_gb_s(offer) is None
    ]
    if guessed:
        yield Advice(
            "unknown-bandwidth",
            f"memory bandwidth is not known, so these are reckoned low: {', '.join(guessed)}; "
            "`speed: {bandwidth_gb_s: …}` in the inventory makes split and estimate right",
        )


def _unknown_architecture(case: _Case) -> Iterator[Advice]:
    for note in case.memory.notes:
        yield Advice("unknown-architecture", note)


def _of(seconds: float, token_s: float) -> str:
    return f"{1e3 * seconds:.1f} of {1e3 * token_s:.1f} ms"


RULES_OF_SPEED = (
    _alternatives,
    _cpu_layers,
    _network_bound,
    _draft_pays,
    _long_context,
    _imbalanced,
)
RULES = (
    _load_mode,
    _slow_link,
    _unused_nodes,
    _unknown_bandwidth,
    _unknown_architecture,
)
