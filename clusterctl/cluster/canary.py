"""Whether a head computes sense: it is asked for the probabilities of texts that any model can continue."""

from __future__ import annotations

from collections.abc import Sequence

import httpx

from clusterctl.cluster.head_api import HeadApi
from clusterctl.cluster.references import keep_reference, read_reference
from clusterctl.cluster.steps import Tell
from clusterctl.errors import ClusterctlError, ComputesNonsense
from clusterctl.llama.sense import Passage, Sense, Verdict, expected_logprob, judge, questions
from clusterctl.model import Outcome, Step

TOKEN_TIMEOUT_S = 60.0


async def sense_check(
    api: HeadApi, reference: Sequence[float] | None = None, timeout_s: float = TOKEN_TIMEOUT_S
) -> Sense:
    """Judge a head that serves nobody else just now; about forty tokens are computed, one a request.

    `reference` holds the log-probabilities of the same model and build on one node, `timeout_s` is for one
    token. A head that does not answer, or does not tell probabilities, is doubtful, never sane.
    """
    logprobs: list[float | None] = []
    try:
        for passage in questions().passages:
            logprobs += await _ask(api, passage, timeout_s)
    except httpx.HTTPError as error:
        return Sense(Verdict.DOUBTFUL, f"it does not answer ({error or type(error).__name__})")
    except ClusterctlError as error:
        return Sense(Verdict.DOUBTFUL, f"it does not tell probabilities: {error.message}")
    return judge(logprobs, reference)


async def _ask(api: HeadApi, passage: Passage, timeout_s: float) -> list[float | None]:
    """The log-probability of every expected token, each after those that were expected before it.

    The first request of a passage computes all of it anew: the numbers then depend on nothing that a slot held
    before, and two runs on one build are the same.
    """
    begin = len(await api.tokens(passage.given))
    tokens = await api.tokens(passage.given + passage.expected)
    found: list[float | None] = []
    for position in range(begin, len(tokens)):
        candidates = await api.candidates(
            tokens[:position], questions().candidates, timeout_s, cached=position > begin
        )
        found.append(expected_logprob(candidates, tokens[position]))
    return found


async def demand_sense(api: HeadApi, head: str, key: str | None, *, on_one_node: bool, tell: Tell) -> Sense:
    """Judge a cluster that has just come up, with the reference for `key` where there is one.

    Without remote devices (`on_one_node`) there is nothing to compare with: what it gives becomes the reference.

    Raises:
        ComputesNonsense: if it computes garbage.
    """
    reference = None if on_one_node or key is None else read_reference(key)
    sense = await sense_check(api, reference)
    if sense.verdict is Verdict.BROKEN:
        raise ComputesNonsense(
            f"the cluster answers, but what it computes is wrong: {sense.detail}",
            node=head,
            hint="a device, a driver, a link or a damaged cache (`down --purge-cache`) spoils the numbers; "
            "`clusterctl recover --bisect` leaves out one worker at a time to find it",
        )
    if sense.verdict is Verdict.SANE:
        tell(Step("sense", Outcome.DONE, detail=sense.detail))
    else:
        tell(Step("sense", Outcome.WARNING, detail=f"can't tell: {sense.detail}"))
    if on_one_node and key is not None and sense.logprobs:
        keep_reference(key, sense.logprobs)
    return sense
