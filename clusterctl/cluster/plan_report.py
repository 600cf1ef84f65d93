"""A plan as the document of `plan --json`; sizes in MiB, figures rounded to what they are worth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from clusterctl.cluster.known_faults import load_all_advisories
from clusterctl.cluster.plan import Plan
from clusterctl.llama.advisories import Advisory
from clusterctl.llama.secrets import hide_secrets
from clusterctl.model import MIB, BudgetStep, Estimate, Memory, NodeCommand, Share
from clusterctl.plan_reports import (
    AdvisoryReport,
    BudgetStepReport,
    CommandReport,
    DeviceReport,
    DraftReport,
    HostReport,
    PlanReport,
    UnusedReport,
)
from clusterctl.planning.margins import margin_bytes


def plan_report(plan: Plan) -> PlanReport:
    """Return the document of a plan."""
    return PlanReport(
        fits=True,
        strategy=plan.split.strategy,
        n_layer=plan.split.n_layer,
        devices=tuple(_device(share, name) for share, name in zip(plan.split.shares, plan.names, strict=True)),
        host=HostReport(
            **_sizes(plan.split.host),
            budget_mib=None if plan.host_budget_bytes is None else _mib(plan.host_budget_bytes),
        ),
        unused=tuple(
            UnusedReport(offer.node, offer.device, why, _steps(offer.budget_steps))
            for offer, why in plan.split.unused
        ),
        device_order=plan.names,
        tensor_split=plan.split.tensor_split,
        commands=_commands((*plan.workers, plan.head) if plan.head else ()),
        estimate=_rounded(plan.estimate),
        advice=plan.advice,
        draft=_draft(plan),
        notes=plan.header.notes,
        advisories=tuple(_advisories(plan.known_faults)),
    )


def _device(share: Share, name: str) -> DeviceReport:
    offer = share.offer
    return DeviceReport(
        node=offer.node,
        device=offer.device,
        rpc_name=name,
        layers=_range(share.first_layer, share.last_layer),
        output=share.has_output,
        **_sizes(share.memory),
        budget_mib=_mib(offer.budget_bytes),
        reason=share.reason,
        margin_mib=_mib(margin_bytes(offer.backend, share.memory.compute_bytes)),
        budget_steps=_steps(offer.budget_steps),
    )


def _draft(plan: Plan) -> DraftReport | None:
    if plan.draft is None:
        return None
    return DraftReport(
        node=plan.draft.node,
        device=plan.draft.device,
        **_sizes(plan.draft.memory),
        host_mib=_mib(plan.draft.host.total_bytes),
    )


def _advisories(found: Sequence[Advisory]) -> Iterator[AdvisoryReport]:
    """Every known fault that was looked for."""
    found_by_code = {advisory.code: advisory for advisory in found}
    for advisory in load_all_advisories():
        applies = _verdict(found_by_code.get(advisory.code))
        yield AdvisoryReport(advisory.code, applies, advisory.message, advisory.source)


def _verdict(match: Advisory | None) -> str:
    if match is None:
        return "no"
    return "yes" if match.is_certain else "unknown"


def _commands(calls: Sequence[NodeCommand]) -> tuple[CommandReport, ...]:
    return tuple(CommandReport(call.node, call.role, call.argv, hide_secrets(call.env)) for call in calls)


def _rounded(estimate: Estimate) -> Estimate:
    def rounded(figure: float | None, digits: int) -> float | None:
        return None if figure is None else round(figure, digits)

    return replace(
        estimate,
        decode_tok_s=rounded(estimate.decode_tok_s, 2),
        decode_ceiling_tok_s=rounded(estimate.decode_ceiling_tok_s, 2),
        prefill_tok_s=rounded(estimate.prefill_tok_s, 1),
        prefill_ceiling_tok_s=rounded(estimate.prefill_ceiling_tok_s, 1),
        load_s=rounded(estimate.load_s, 1),
    )


def _range(first: int | None, last: int | None) -> tuple[int, int] | None:
    return None if first is None or last is None else (first, last)


def _steps(steps: Sequence[BudgetStep]) -> tuple[BudgetStepReport, ...]:
    return tuple(BudgetStepReport(step.cause, _mib(step.left_bytes)) for step in steps)


def _sizes(memory: Memory) -> dict[str, float]:
    return {
        "model_mib": _mib(memory.model_bytes),
        "kv_mib": _mib(memory.kv_bytes),
        "compute_mib": _mib(memory.compute_bytes),
        "total_mib": _mib(memory.total_bytes),
    }


def _mib(size_bytes: int) -> float:
    return round(size_bytes / MIB, 2)
