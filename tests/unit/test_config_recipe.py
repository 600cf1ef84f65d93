"""Recipes: what they mean, and every way they can be wrong."""

from __future__ import annotations

import pytest

from clusterctl.config.inventory import Inventory
from clusterctl.config.loading import parse_inventory, parse_recipe
from clusterctl.config.recipe import Recipe
from clusterctl.errors import ConfigError

SMALL = "version: 1\nname: small\nmodel: {path: /m.gguf}\ncontext: 4096\n"
CONTRACT = """\
version: 1
name: qwen3-235b
source: https://example.org/experiment
model: {path: /models/Qwen3-235B-A22B-Q4_K_M-00001-of-00003.gguf, alias: qwen3-235b}
draft: {path: /models/Qwen3-1.7B-Q8_0.gguf, max_tokens: 16, device: CUDA0}
context: 32768
parallel: 1
kv_cache: {k: q8_0, v: q8_0, unified: true}
flash_attention: auto
batch: {logical: 2048, physical: 512}
load_mode: dio
split: {strategy: memory}
server: {host: 127.0.0.1, port: 8080, api_key_file: ~/.config/clusterctl/key, extra_args: [--jinja]}
expect: {decode_tok_s: 11.8, prefill_tok_s: 148}
"""
INVENTORY = """\
version: 1
cluster: c
network: 10.0.0.0/24
nodes:
  - {name: strix1, role: worker}
  - {name: rtx, role: head, serve_only: true}
"""


def parse(text: str, inventory: Inventory | None = None) -> Recipe:
    return parse_recipe(text, "r.yaml", {}, inventory)


def faults(text: str, inventory: Inventory | None = None) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse(text, inventory)
    return [str(fault) for fault in caught.value.faults]


def test_every_key_arrives_with_its_type() -> None:
    recipe = parse(CONTRACT)
    assert (recipe.name, recipe.source) == ("qwen3-235b", "https://example.org/experiment")
    assert recipe.model.path == "/models/Qwen3-235B-A22B-Q4_K_M-00001-of-00003.gguf"
    assert recipe.model.alias == "qwen3-235b"
    assert recipe.draft is not None
    assert (recipe.draft.type, recipe.draft.path) == ("model", "/models/Qwen3-1.7B-Q8_0.gguf")
    assert (recipe.draft.max_tokens, recipe.draft.device) == (16, "CUDA0")
    assert (recipe.context, recipe.parallel) == (32768, 1)
    assert (recipe.kv_cache.k, recipe.kv_cache.v, recipe.kv_cache.unified) == ("q8_0", "q8_0", True)
    assert (recipe.flash_attention, recipe.load_mode) == ("auto", "dio")
    assert (recipe.batch.logical, recipe.batch.physical) == (2048, 512)
    assert (recipe.split.strategy, recipe.split.layers, recipe.split.cpu_layers) == ("memory", None, 0)
    assert (recipe.server.host, recipe.server.port) == ("127.0.0.1", 8080)
    assert (recipe.server.api_key_file, recipe.server.extra_args) == (
        "~/.config/clusterctl/key",
        ("--jinja",),
    )
    assert recipe.expect == {"decode_tok_s": 11.8, "prefill_tok_s": 148.0}


def test_what_is_left_out_is_llama_cpps_own_default() -> None:
    recipe = parse(SMALL)
    assert (recipe.draft, recipe.parallel, recipe.flash_attention, recipe.load_mode) == (
        None,
        1,
        "auto",
        "auto",
    )
    assert (recipe.kv_cache.k, recipe.kv_cache.v, recipe.kv_cache.unified) == ("f16", "f16", None)
    assert (recipe.batch.logical, recipe.batch.physical) == (2048, 512)
    assert (recipe.split.strategy, recipe.server.host, recipe.server.port) == ("memory", "127.0.0.1", 8080)
    assert (recipe.server.api_key_file, recipe.server.extra_args, recipe.expect) == (None, (), {})


@pytest.mark.parametrize(
    ("written", "meant"), [("on", "on"), ("'on'", "on"), ("true", "on"), ("off", "off"), ("auto", "auto")]
)
def test_flash_attention_needs_no_quotes(written: str, meant: str) -> None:
    assert parse(SMALL + f"flash_attention: {written}\n").flash_attention == meant


def test_a_draft_may_come_from_the_text_itself() -> None:
    draft = parse(SMALL + "draft: {type: ngram-mod, max_tokens: 16}\n").draft
    assert draft is not None
    assert (draft.type, draft.path, draft.max_tokens) == ("ngram-mod", None, 16)


def test_layers_are_given_to_nodes_or_to_their_devices() -> None:
    split = parse(SMALL + "split: {strategy: manual, layers: {strix1/ROCm0: 40, rtx: 12}, cpu_layers: 2}\n").split
    assert (split.layers, split.cpu_layers) == ({"strix1/ROCm0": 40, "rtx": 12}, 2)


def test_arguments_stay_text() -> None:
    server = parse(SMALL + "server: {extra_args: [--top-k, 20, --temp, 1.0, '']}\n").server
    assert server.extra_args == ("--top-k", "20", "--temp", "1.0", "")


def test_a_secret_among_the_arguments_is_refused_and_not_shown() -> None:
    for arguments in ("[--api-key, geheim-1]", "[--api_key=geheim-1]", "[-hft, geheim-1]"):
        (fault,) = faults(SMALL + f"server: {{extra_args: {arguments}}}\n")
        assert fault.startswith("r.yaml:5:23: server.extra_args[0]: `-")
        assert "name a file in `server.api_key_file`" in fault
        assert "geheim" not in fault


def test_every_argument_that_would_make_the_plan_wrong_is_told() -> None:
    arguments = "[-nkvo, --cpu-moe, -ncmoe, 9, --mmproj, x, --lora, y, --n_gpu_layers, 3, --swa_full]"
    told = faults(SMALL + f"server: {{extra_args: {arguments}}}\n")
    assert [fault.split("`")[1] for fault in told] == [
        *("-nkvo", "--cpu-moe", "-ncmoe", "--mmproj", "--lora", "--n-gpu-layers")
    ]
    assert "moves the KV cache" in told[0]


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (
            "draft: {}",
            "5:8: draft: `path` of a draft model is missing; or draft without one: `type: ngram-mod`",
        ),
        (
            "draft: {type: ngram-mod, path: /d}",
            "5:32: draft.path: `ngram-mod` drafts without a model; remove either `path` or `type`",
        ),
        (
            "draft: {type: ngram-mod, device: CUDA0}",
            "5:34: draft.device: `ngram-mod` drafts without a device; remove `device`",
        ),
        (
            "draft: {type: ngram}",
            (
                "5:15: draft.type: must be one of model, ngram-simple, ngram-map-k, ngram-map-k4v, "
                "ngram-mod, ngram-cache (got ngram)"
            ),
        ),
        (
            "kv_cache: {k: q8}",
            "5:15: kv_cache.k: must be one of f32, f16, bf16, q8_0, q5_1, q5_0, q4_1, q4_0, iq4_nl (got q8)",
        ),
        ("flash_attention: yes", "5:18: flash_attention: must be one of on, off, auto (got yes)"),
        (
            "load_mode: directio",
            "5:12: load_mode: must be one of auto, none, mmap, mlock, dio (got directio)",
        ),
        ("batch: {physical: 4096}", "5:19: batch.physical: must not exceed `batch.logical`, 2048 (got 4096)"),
        (
            "split: {strategy: manual}",
            "5:8: split: `layers` is missing; `strategy: manual` needs a number for each node or device",
        ),
        (
            "split: {layers: {a: 1}}",
            "5:17: split.layers: only `strategy: manual` takes `layers`, and this is `memory`",
        ),
        ("split: {strategy: manual, layers: {}}", "5:35: split.layers: must not be empty (got a map)"),
        ("split: {strategy: manual, layers: {a: 0}}", "5:39: split.layers.a: must be 1..2147483647 (got 0)"),
        (
            "split: {strategy: manual, layers: {A: 1}}",
            "5:36: split.layers: key `A` must be the name of a node, or of its device written `node/device`",
        ),
        (
            "split: {strategy: manual, layers: {a/X: 1, a: 1}}",
            "5:35: split.layers: `a` and `a/X` overlap; give the node a number, or its devices",
        ),
        ("split: {cpu_layers: -1}", "5:21: split.cpu_layers: must be 0..2147483647 (got -1)"),
        ("parallel: 0", "5:11: parallel: must be 1..2147483647 (got 0)"),
        ("server: {port: http}", "5:16: server.port: must be a whole number (got http)"),
        ("server: {extra_args: --jinja}", "5:22: server.extra_args: must be a list (got --jinja)"),
        (
            "server: {extra_args: [-x, -c]}",
            "5:27: server.extra_args[1]: `-c` must not stand here: `context` decides it",
        ),
        (
            "server: {extra_args: [--rpc]}",
            "5:23: server.extra_args[0]: `--rpc` must not stand here: the inventory decides it",
        ),
        (
            "server: {api_key_file: key}",
            "5:24: server.api_key_file: must be an absolute path, or begin with `~/`, on one line (got key)",
        ),
        ("expect: {decode_tok_s: fast}", "5:24: expect.decode_tok_s: must be a number (got fast)"),
        ("expect: {decode_tok_s: 0}", "5:24: expect.decode_tok_s: must be a number above 0 (got 0)"),
        (
            "flash_attention: off\nkv_cache: {v: q4_0}",
            "6:15: kv_cache.v: `q4_0` needs flash attention, and `flash_attention` is off",
        ),
        ("contxt: 1", "5:1: unknown key `contxt`; did you mean `context`?"),
    ],
)
def test_a_wrong_value_is_told_in_plain_words(line: str, fault: str) -> None:
    assert faults(SMALL + line + "\n") == [f"r.yaml:{fault}"]


def test_what_a_recipe_needs_is_told_at_once() -> None:
    assert faults("version: 1\nmodel: {path: m.gguf}\n") == [
        "r.yaml:1:1: `context` is missing",
        "r.yaml:1:1: `name` is missing",
        "r.yaml:2:15: model.path: must be an absolute path, or begin with `~/`, on one line (got m.gguf)",
    ]
    assert "r.yaml:2:7: model: has no value" in faults("version: 1\nmodel:\n")


def test_plain_caches_do_without_flash_attention() -> None:
    assert parse(SMALL + "flash_attention: off\nkv_cache: {k: q8_0, v: bf16}\n").flash_attention == "off"


def test_a_manual_split_names_nodes_of_the_inventory_that_can_take_layers() -> None:
    inventory = parse_inventory(INVENTORY, "i.yaml", {})
    text = SMALL + "split: {strategy: manual, layers: {strix1: 1, strix2/ROCm0: 2, rtx: 3}}\n"
    assert parse(text).split.layers == {"strix1": 1, "strix2/ROCm0": 2, "rtx": 3}
    assert faults(text, inventory) == [
        (
            "r.yaml:5:47: split.layers.strix2/ROCm0: no node of the inventory is called `strix2`; "
            "did you mean `strix1`?"
        ),
        "r.yaml:5:64: split.layers.rtx: `rtx` is `serve_only` in the inventory, so its devices take no layers",
    ]


def test_other_splits_need_no_look_at_the_inventory() -> None:
    assert parse(SMALL, parse_inventory(INVENTORY, "i.yaml", {})).split.strategy == "memory"
