"""Values of an inventory and a recipe are only ever values: no shell of a node runs any of them."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from clusterctl.cluster.examine import wanted_files
from clusterctl.config.inventory import Inventory
from clusterctl.config.loading import parse_inventory, parse_recipe
from clusterctl.config.recipe import Recipe
from clusterctl.errors import ConfigError
from clusterctl.remote import commands
from clusterctl.remote.command import Command

CANARY = "canary"
ATTACKS = (
    "$(touch {canary})",
    "`touch {canary}`",
    "; touch {canary}; ",
    "' ; touch {canary} ; '",
    '" ; touch {canary} ; "',
    "\\' ; touch {canary} #",
    "&& touch {canary}",
    "| touch {canary}",
    ";touch$IFS{canary};",
    "$0 * ? ~ !! ",
    "-e touch",
    "--",
    "%s%n",
    "A=$(touch {canary})",
    "(touch {canary})",
    ">{canary}",
    "é\u202e\ud7ff",
)

hostile = st.lists(st.sampled_from(ATTACKS), min_size=1, max_size=3).map("".join)


def sites(value: str) -> Iterator[tuple[dict[str, object], dict[str, object]]]:
    """Inventories and recipes with a value in each place that takes free text."""
    node = {"name": "w1", "role": "worker"}
    model = {"path": "/models/x.gguf"}
    recipes: tuple[dict[str, object], ...] = (
        {"model": {"path": f"/models/{value}.gguf", "alias": value}},
        {"model": {"path": f"~/{value}.gguf"}},
        {"model": model, "server": {"api_key_file": f"/{value}", "extra_args": [value, "--x", value]}},
        {"model": model, "server": {"host": value}},
        {"model": model, "draft": {"path": f"/{value}"}},
    )
    for settings_of_node in (
        {"llama": {"bin_dir": f"/opt/{value}"}},
        {"env": {"GGML_X": value, "PATH_OF_IT": f"/{value}"}},
        {"host": value},
        {"ssh": {"user": value}},
        {"labels": {value: value}},
    ):
        yield {**node, **settings_of_node}, {"model": model}
    for recipe in recipes:
        yield dict(node), recipe


def load(node: dict[str, object], recipe: dict[str, object]) -> tuple[Inventory, Recipe] | None:
    """The files as clusterctl reads them, `None` if it refuses them."""
    nodes = [node, {"name": "head", "role": "head"}]
    site = {"version": 1, "cluster": "demo", "network": "10.0.0.0/24", "nodes": nodes}
    try:
        return (
            parse_inventory(json.dumps(site), "inventory.yaml", {}),
            parse_recipe(json.dumps({"version": 1, "name": "x", "context": 512, **recipe}), "recipe.yaml", {}),
        )
    except ConfigError:
        return None


def calls(inventory: Inventory, recipe: Recipe) -> Iterator[Command]:
    """Every command into which a value of these files can get."""
    worker, files = inventory.node("w1"), wanted_files(recipe)
    argv = ("true", *recipe.server.extra_args, recipe.model.alias or "", worker.host, worker.ssh.user or "")
    yield commands.probe(
        "demo", "worker", bin_dir=worker.llama.bin_dir, ports=[50052], files=files, env=worker.env
    )
    yield commands.start("demo", "w1", argv, record=inventory.model_dump_json(), env=worker.env)
    yield commands.stop("demo", "w1", grace_s=1)
    yield commands.list_devices(argv, [recipe.server.host], worker.env)
    yield commands.record("demo", recipe.model_dump_json())
    yield from (commands.read(file, 0, 100) for file in files)


@settings(max_examples=10, deadline=None)
@given(attack=hostile)
def test_no_value_is_run_by_a_shell(attack: str) -> None:
    with tempfile.TemporaryDirectory() as home:
        canary = Path(home, CANARY)
        loaded = [load(*site) for site in sites(attack.format(canary=canary))]
        assert any(loaded)
        for text in {call.text() for each in filter(None, loaded) for call in calls(*each)}:
            subprocess.run(
                ["sh", "-s"],
                input=text,
                env={"HOME": home, "PATH": "/usr/bin:/bin"},
                cwd=home,
                capture_output=True,
                check=False,
            )
            assert not canary.exists(), text
