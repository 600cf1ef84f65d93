"""llama-bench told to work as the head did, and its answer read."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from clusterctl.bench.llama_bench import bench_settings, parse_output
from clusterctl.config.recipe import Recipe
from clusterctl.errors import ClusterctlError
from clusterctl.llama.flags import parse_bench_usage, spell
from clusterctl.measurements import Settings
from clusterctl.model import Role
from tests.unit import cluster_samples
from tests.unit.bench_samples import run
from tests.unit.test_bench_plan import HEAD, process

AGED = """\
usage: llama-bench [options]

options:
  -r, --repetitions <n>                     (default: 5)
  -o, --output <csv|json|jsonl|md|sql>      (default: md)
  -rpc, --rpc <rpc_servers>                 (default: none)
  -m, --model <filename>                    (default: models/7B/ggml-model-q4_0.gguf)
  -p, --n-prompt <n>                        (default: 512)
  -n, --n-gen <n>                           (default: 128)
  -b, --batch-size <n>                      (default: 2048)
  -ub, --ubatch-size <n>                    (default: 512)
  -ctk, --cache-type-k <t>                  (default: f16)
  -ctv, --cache-type-v <t>                  (default: f16)
  -ngl, --n-gpu-layers <n>                  (default: 99)
  -sm, --split-mode <none|layer|row>        (default: layer)
  -dev, --device <dev0/dev1/...>            (default: auto)
  -fa, --flash-attn <0|1>                   (default: 0)
  -mmp, --mmap <0|1>                        (default: 1)
  -ts, --tensor-split <ts0/ts1/..>          (default: 0)
"""
ARGV = (*HEAD, "--tensor-split", "5,6,7,13", "--split-mode", "layer", "--n-gpu-layers", "31", "--model", "/m.gguf")


def recipe(text: str = "") -> Recipe:
    return cluster_samples.recipe(cluster_samples.RECIPE + text)


def argv_of(usage: str, recipe: Recipe, head: Sequence[str] = ARGV) -> str:
    flags = parse_bench_usage(usage)
    assert flags is not None
    record = process("head", Role.HEAD, head).record
    return " ".join(spell(flags, bench_settings(record, recipe, Settings(512, 128, 5, 1))))


def output(**changed: object) -> str:
    common = {"build_commit": "7e4c0a9", "build_number": 11434}
    prefill = {**common, "n_prompt": 512, "n_gen": 0, "samples_ts": [100.0, 104.0, 102.0]}
    decode = {**common, "n_prompt": 0, "n_gen": 128, "samples_ts": [20.0, 20.5, 19.5], **changed}
    return json.dumps([prefill, decode])


def test_a_real_build_gets_the_heads_placement_with_slashes_between() -> None:
    argv = argv_of(cluster_samples.help_text("llama-bench", "b11434"), recipe("load_mode: dio\n"))
    assert argv == (
        "--rpc 10.10.0.21:50052,10.10.0.22:50052 --device RPC0/RPC1/RPC2/CUDA0 --tensor-split 5/6/7/13 "
        "--split-mode layer --n-gpu-layers 31 --model /m.gguf --load-mode dio --cache-type-k f16 "
        "--cache-type-v f16 --flash-attn auto --batch-size 2048 --ubatch-size 512 "
        "--n-prompt 512 --n-gen 128 --repetitions 5 --output json"
    )


def test_an_aged_build_gets_numbers_for_words() -> None:
    assert "--flash-attn 1" in argv_of(AGED, recipe())
    assert "--flash-attn 0" in argv_of(AGED, recipe("flash_attention: off\n"))
    assert "--mmap 0" in argv_of(AGED, recipe("load_mode: none\n"))


def test_a_head_on_its_processor_has_no_split_to_pass_on() -> None:
    argv = argv_of(AGED, recipe(), ("--device", "none", "--n-gpu-layers", "0", "--model", "/m.gguf"))
    assert argv.startswith("--device none --n-gpu-layers 0 --model /m.gguf")
    assert "--rpc" not in argv


@pytest.mark.parametrize(
    "text", ["", "env: '/opt/llama-bench': No such file or directory", "version: 1 (3ce7da2)"]
)
def test_anything_else_is_no_usage(text: str) -> None:
    assert parse_bench_usage(text) is None


def test_the_usage_of_llama_server_is_not_that_of_llama_bench() -> None:
    assert parse_bench_usage(cluster_samples.help_text("llama-server", "b10434")) is None


def test_its_samples_become_medians_and_ranges() -> None:
    direct = parse_output(output(), run())
    [load] = direct.loads
    assert (load.concurrency, direct.arm, direct.build) == (1, "llama-bench", "b11434 (7e4c0a9)")
    assert load.figures["prefill_tok_s"].median == 102.0
    assert (load.figures["decode_tok_s"].lowest, load.figures["decode_tok_s"].highest) == (19.5, 20.5)


def test_a_build_without_a_checkout_is_unknown() -> None:
    text = output().replace("11434", "0").replace("7e4c0a9", "unknown")
    assert parse_output(text, run()).build == "unknown build"


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "null", "[1]", output(samples_ts="fast"), output(samples_ts=[None])]
)
def test_an_answer_that_is_something_else_is_an_error(text: str) -> None:
    with pytest.raises(ClusterctlError, match="answered something else"):
        parse_output(text, run())
