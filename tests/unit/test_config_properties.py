"""Whatever a file holds, the answer is a checked value or faults in plain words, and nothing is lost."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterctl.config.inventory import Inventory
from clusterctl.config.loading import parse_inventory, parse_recipe
from clusterctl.config.recipe import Recipe
from clusterctl.config.schema import inventory_schema, recipe_schema
from clusterctl.errors import ConfigError, Fault
from tests.unit.ui_rendering import unseen

steady = settings(derandomize=True, deadline=None, max_examples=60)

JARGON = re.compile(r"pydantic|input should|field required|value error|https?://|is not valid here", re.IGNORECASE)
WORDS = st.sampled_from(
    ["version: 1", "nodes:\n", "name: ", "role: head", "rpc: ", "<<: *a", "${A}", "---\n", "%YAML 1.2\n"]
)
SIGNS = st.text("-:?&*!|>'\"{}[]<$%#\t\n\0 aA", max_size=4)
TEXTS = st.text() | st.lists(WORDS | SIGNS).map("".join)


def keys_in(schema: dict[str, Any]) -> list[str]:
    """Return every key that a schema knows, in any section."""
    sections = [schema, *schema["$defs"].values()]
    return sorted({key for section in sections for key in section.get("properties", {})})


INVENTORY_KEYS = keys_in(inventory_schema())
RECIPE_KEYS = keys_in(recipe_schema())
SCALARS = st.sampled_from(
    [1, 0, -1, 1.5, True, None, "head", "worker", "127.0.0.1", "10.0.0.0/24", "manual", "off", "q8_0"]
)


def shapes(keys: list[str]) -> st.SearchStrategy[Any]:
    """Return values of any shape, built of the keys of a file."""
    keys_or_junk = st.sampled_from(keys) | st.text(max_size=3)
    return st.recursive(
        SCALARS | st.text(max_size=5) | st.integers() | st.floats(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys_or_junk, inner, max_size=8),
        max_leaves=25,
    )


def faults_of(text: str) -> Iterator[Fault]:
    """Yield the faults of a text, read as either file."""
    for parse in (parse_inventory, parse_recipe):
        try:
            parse(text, "f.yaml", {"A": "x: [y"})
        except ConfigError as error:
            yield from error.faults


def expect_words(text: str) -> None:
    for fault in faults_of(text):
        assert fault.line >= 1
        assert fault.column >= 1
        assert not unseen(str(fault))
        assert "\n" not in str(fault)
        assert not JARGON.search(fault.message), fault


@steady
@given(TEXTS)
def test_any_text_gives_a_value_or_faults(text: str) -> None:
    expect_words(text)


@steady
@given(st.dictionaries(st.sampled_from(INVENTORY_KEYS), shapes(INVENTORY_KEYS), max_size=8))
def test_inventories_of_any_shape_give_a_value_or_faults_in_plain_words(shape: dict[str, Any]) -> None:
    nodes = shape.get("nodes")
    expect_words(yaml.safe_dump({"version": 1, **shape, "nodes": nodes if isinstance(nodes, list) else [nodes]}))


@steady
@given(st.dictionaries(st.sampled_from(RECIPE_KEYS), shapes(RECIPE_KEYS), max_size=8))
def test_recipes_of_any_shape_give_a_value_or_faults_in_plain_words(shape: dict[str, Any]) -> None:
    expect_words(yaml.safe_dump(shape))


def some(**keys: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Return maps with any selection of the keys."""
    return st.fixed_dictionaries({}, optional=keys)


NAMES = st.from_regex(r"[a-z0-9][a-z0-9-]{0,12}", fullmatch=True)
DEVICES = st.sampled_from(["CUDA0", "CUDA1", "ROCm0", "Vulkan0", "CPU"])
PORTS = st.integers(1, 65535)
NUMBERS = st.floats(0.001, 1e6)
PLAIN_TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]))
PATHS = st.from_regex(r"~?/[a-z $'\"{}:#-]{0,12}", fullmatch=True)
SETTINGS: dict[str, st.SearchStrategy[Any]] = {
    "backend": st.sampled_from(["cuda", "rocm", "vulkan", "metal", "sycl", "cpu"]),
    "ssh": some(user=NAMES.filter(lambda name: name[0] != "-"), port=PORTS, connect_timeout=st.integers(1, 60)),
    "llama": some(bin_dir=PATHS, build=st.sampled_from(["b11434", "7e4c0a9", "1234567"])),
    "memory": some(reserve_mib=st.integers(0, 10**6), limit_mib=st.integers(1, 10**6)),
    "speed": some(
        bandwidth_gb_s=NUMBERS | st.dictionaries(DEVICES, NUMBERS),
        fp16_tflop_s=NUMBERS | st.dictionaries(DEVICES, NUMBERS),
    ),
    "env": st.dictionaries(st.from_regex(r"[A-Z_][A-Z0-9_]{0,8}", fullmatch=True), PLAIN_TEXT, max_size=3),
    "labels": st.dictionaries(NAMES, PLAIN_TEXT, max_size=3),
}
RPC = some(
    port=PORTS,
    devices=st.lists(DEVICES, min_size=1, unique=True),
    threads=st.integers(1, 64),
    cache=st.booleans(),
)


@st.composite
def inventories(draw: st.DrawFn) -> dict[str, Any]:
    names = draw(st.lists(NAMES, min_size=1, max_size=5, unique=True))
    nodes = [
        {"name": name, "role": "worker" if at else "head", **draw(some(rpc=RPC, **SETTINGS))}
        for at, name in enumerate(names)
    ]
    defaults = draw(some(**SETTINGS))
    return {
        "version": 1,
        "cluster": draw(NAMES),
        "network": "10.0.0.0/24",
        "defaults": defaults,
        "nodes": nodes,
    }


RECIPES = st.fixed_dictionaries(
    {
        "version": st.just(1),
        "name": NAMES,
        "model": some(alias=PLAIN_TEXT.filter(bool)),
        "context": st.integers(1, 10**6),
    },
    optional={
        "draft": st.just({"path": "/d.gguf"}) | st.just({"type": "ngram-mod", "max_tokens": 4}),
        "flash_attention": st.sampled_from(["on", "off", "auto"]),
        "kv_cache": some(k=st.sampled_from(["f16", "q8_0"]), unified=st.booleans()),
        "batch": st.just({"logical": 4096, "physical": 4096}),
        "split": some(cpu_layers=st.integers(0, 99))
        | st.builds(
            lambda layers: {"strategy": "manual", "layers": layers}, st.dictionaries(NAMES, PORTS, min_size=1)
        ),
        "server": some(port=PORTS, extra_args=st.lists(PLAIN_TEXT.filter(lambda text: not text.startswith("-")))),
        "expect": st.dictionaries(st.sampled_from(["decode_tok_s", "prefill_tok_s", "load_s"]), NUMBERS),
    },
)


def written(data: object) -> str:
    """Return the data as YAML whose `${` is meant literally."""
    return yaml.safe_dump(data, allow_unicode=True).replace("${", "$${")


@steady
@given(inventories())
def test_an_inventory_survives_being_written_and_read_again(data: dict[str, Any]) -> None:
    inventory = parse_inventory(written(data), "i.yaml", {})
    dumped = inventory.model_dump(mode="json", by_alias=True)
    assert parse_inventory(written(dumped), "i.yaml", {}) == inventory
    assert Inventory.model_validate_json(json.dumps(dumped)) == inventory


@steady
@given(RECIPES)
def test_a_recipe_survives_being_written_and_read_again(data: dict[str, Any]) -> None:
    recipe = parse_recipe(written({**data, "model": {**data["model"], "path": "/m.gguf"}}), "r.yaml", {})
    dumped = recipe.model_dump(mode="json", by_alias=True)
    assert parse_recipe(written(dumped), "r.yaml", {}) == recipe
    assert Recipe.model_validate_json(json.dumps(dumped)) == recipe


NASTY = st.lists(
    st.sampled_from(
        ["'", '"', "\n", ": ", "${", "}", "$", "- ", "#", "{", "[", "\\", "\t", "&", "*", "!", "%", "|", "~"]
    )
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=4)
).map("".join)


@steady
@given(NASTY)
def test_whatever_a_variable_holds_arrives_to_the_letter(value: str) -> None:
    text = "version: 1\ncluster: c\nnodes:\n- name: h\n  role: head\n  env:\n    PLAIN: ${V}\n    QUOTED: '<${V}>'"
    assert parse_inventory(text, "i.yaml", {"V": value}).head.env == {"PLAIN": value, "QUOTED": f"<{value}>"}
