"""llama-bench on the devices of a running cluster, where it is installed: the rates without any server between.

A worker serves one client, so llama-bench takes the head's place for a while.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

from clusterctl.bench.figures import spread_of
from clusterctl.cluster.clearing import left_errors
from clusterctl.cluster.down import tear_down
from clusterctl.cluster.examine import examine
from clusterctl.cluster.facts import NodeFacts
from clusterctl.cluster.patience import load_deadline_s
from clusterctl.cluster.record import Record
from clusterctl.cluster.running_head import argument_of, running_head
from clusterctl.cluster.session import Session, session
from clusterctl.cluster.steps import Tell, telling
from clusterctl.config.inventory import Inventory
from clusterctl.config.recipe import Recipe
from clusterctl.errors import ClusterctlError, UsageError, raise_all
from clusterctl.llama.flags import BENCH, Flags, parse_bench_usage, spell
from clusterctl.measurements import Load, Run, Settings, SkippedArm
from clusterctl.model import Build
from clusterctl.remote import commands
from clusterctl.remote.transport import Transport

LLAMA_BENCH_ARM = "llama-bench"
USAGE_TIMEOUT_S = 25
# Of the head's call: what says where the layers are. A comma in llama-bench separates things to try.
PLACED = {"rpc": "--rpc", "n_gpu_layers": "--n-gpu-layers", "model": "--model", "split_mode": "--split-mode"}
PLACED_LISTS = {"device": "--device", "tensor_split": "--tensor-split"}


async def bench_directly(inventory: Inventory, recipe: Recipe, measured: Run, tell: Tell) -> Run | SkippedArm:
    """Measure with llama-bench what `measured` was measured on; the head is ended for it, the workers stay.

    A build that lacks llama-bench, or one that fails, is a reason why the arm is missing.
    """
    try:
        async with session(inventory) as opened:
            return await _bench(opened, inventory, recipe, measured, tell)
    except ClusterctlError as error:
        return SkippedArm(LLAMA_BENCH_ARM, str(error))


def bench_settings(head: Record, recipe: Recipe, settings: Settings) -> dict[str, str | int | bool]:
    """What llama-bench must be told to work as the head did, by the names of flags.yaml."""
    placed = {name: argument_of(head.argv, flag) for name, flag in PLACED.items()}
    lists = {name: argument_of(head.argv, flag) for name, flag in PLACED_LISTS.items()}
    return {
        **{name: value for name, value in placed.items() if value is not None},
        **{name: value.replace(",", "/") for name, value in lists.items() if value is not None},
        "load_mode": recipe.load_mode,
        "cache_type_k": recipe.kv_cache.k,
        "cache_type_v": recipe.kv_cache.v,
        "flash_attention": recipe.flash_attention,
        "batch_logical": recipe.batch.logical,
        "batch_physical": recipe.batch.physical,
        "prompt_tokens": settings.prompt_tokens,
        "decode_tokens": settings.decode_tokens,
        "repetitions": settings.repetitions,
        "output": "json",
    }


def parse_output(text: str, measured: Run) -> Run:
    """Return the run that the JSON output of llama-bench stands for.

    Raises:
        ClusterctlError: if it is not that output.
    """
    try:
        tests = json.loads(text)
        figures = {_figure(test): spread_of(map(float, test["samples_ts"])) for test in tests}
        build = _build(tests[0])
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise ClusterctlError(f"llama-bench answered something else: {text.strip()[:200]}") from error
    known = {name: spread for name, spread in figures.items() if spread is not None}
    return replace(
        measured,
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        arm=LLAMA_BENCH_ARM,
        build=build,
        slots=1,
        context_per_slot=max(measured.settings.prompt_tokens, measured.settings.decode_tokens),
        loads=(Load(1, known),),
        warnings=(),
        estimate={},
    )


async def _bench(opened: Session, inventory: Inventory, recipe: Recipe, measured: Run, tell: Tell) -> Run:
    examination = await examine(opened, inventory, recipe)
    raise_all(list(examination.failed.values()))
    facts, head = examination.facts[inventory.head.name], opened.nodes[inventory.head.name]
    record = running_head(facts.observation)
    program = str(PurePosixPath(record.argv[0]).with_name(BENCH))
    flags = await _usage(head, program, record.env)
    if flags is None:
        raise UsageError(f"{program} is not there", node=head.node)
    argv = (program, *spell(flags, bench_settings(record, recipe, measured.settings)))
    raise_all(left_errors(await tear_down(inventory, tell, only=(head.node,))))
    with telling(tell, "run llama-bench", head.node):
        output = await _run(head, argv, record.env, _timeout_s(facts, measured))
    return parse_output(output, measured)


def _build(test: Mapping[str, Any]) -> str:
    """A build outside a git checkout calls itself number 0 and commit `unknown`."""
    number, commit = int(test["build_number"]), str(test["build_commit"])
    return str(Build(number or None, None if commit == "unknown" else commit))


def _figure(test: Mapping[str, Any]) -> str:
    return "decode_tok_s" if test["n_gen"] else "prefill_tok_s"


async def _usage(head: Transport, program: str, env: Mapping[str, str]) -> Flags | None:
    output = await head.run(commands.llama_bench((program, "--help"), env, timeout_s=USAGE_TIMEOUT_S))
    return parse_bench_usage(output.stdout.decode(errors="replace"))


async def _run(head: Transport, argv: tuple[str, ...], env: Mapping[str, str], timeout_s: int) -> str:
    output = await head.run(commands.llama_bench(argv, env, timeout_s=timeout_s), timeout_s=timeout_s + 30)
    if output.exit_status != 0:
        last = output.stderr.strip()[-300:] or "it says nothing"
        raise ClusterctlError(f"llama-bench ended with status {output.exit_status}: {last}", node=head.node)
    return output.stdout.decode(errors="replace")


def _timeout_s(facts: NodeFacts, measured: Run) -> int:
    """Time to load the model, and twice what as many answers took through the head."""
    loading = load_deadline_s(sum(size or 0 for size in facts.files.values()), expected_s=None)
    answer_s = measured.loads[0].figures["request_s"].highest
    return round(loading + 2 * answer_s * (measured.settings.repetitions + 1))
