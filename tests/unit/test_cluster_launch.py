"""The exact program calls of a plan, written for the options that each real build has."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from clusterctl.cluster.facts import NodeFacts
from clusterctl.cluster.launch import endpoints_of, expected_names, in_home
from clusterctl.cluster.model_file import Models
from clusterctl.cluster.plan import Plan, make_plan
from clusterctl.cluster.verify import Listing, match_devices
from clusterctl.errors import BuildSkew, ConfigError, StartFailed, UsageError
from clusterctl.llama.devices import parse_devices
from clusterctl.model import NodeCommand, Role
from tests.unit.cluster_samples import CUDA, NODES, RECIPE, facts, header, help_text, inventory, listing, recipe

BUILDS = ("b10068", "b10092", "b10434")
OPTION = re.compile(r"--?[A-Za-z][A-Za-z-]*")
TWO = listing(CUDA, CUDA.replace("CUDA0", "CUDA1"))


def of_build(build: str) -> dict[str, NodeFacts]:
    known = {name: facts(name, build=build) for name in ("w1", "head")}
    return {**known, "w2": facts("w2", build=build, devices=TWO)}


def planned(text: str = RECIPE, nodes: str = NODES, build: str = "b10434") -> Plan:
    return make_plan(inventory(nodes), recipe(text), of_build(build), Models(header(), None))


def head_of(plan: Plan) -> NodeCommand:
    assert plan.head is not None
    return plan.head


def value(argv: Sequence[str], option: str) -> str:
    assert argv.count(option) == 1
    return argv[argv.index(option) + 1]


@pytest.mark.parametrize("build", BUILDS)
def test_every_option_is_one_that_the_build_lists_in_its_help(build: str) -> None:
    plan = planned(RECIPE + "flash_attention: on\nkv_cache: {k: q8_0, v: q8_0, unified: true}\n", build=build)
    for command, program in [(head_of(plan), "llama-server"), *((w, "ggml-rpc-server") for w in plan.workers)]:
        known = set(OPTION.findall(help_text(program, build)))
        used = {word for word in command.argv if OPTION.fullmatch(word)}
        assert used <= known
        assert used


@pytest.mark.parametrize("build", BUILDS)
def test_one_order_feeds_the_workers_the_devices_and_the_split(build: str) -> None:
    plan = planned(build=build)
    argv = head_of(plan).argv
    assert argv.index("--rpc") < argv.index("--device") < argv.index("--tensor-split")
    assert value(argv, "--rpc") == "10.10.0.21:50052,10.10.0.22:50052"
    assert value(argv, "--device") == "RPC0,RPC1,RPC2,CUDA0"
    slots = [int(part) for part in value(argv, "--tensor-split").split(",")]
    assert len(slots) == 4
    assert sum(slots) == int(value(argv, "--n-gpu-layers")) == header().n_layer + 1
    assert value(argv, "--fit") == "off"


def test_a_worker_listens_on_its_private_address_alone_and_offers_its_devices() -> None:
    first, second = planned().workers
    assert first.argv == (
        "/opt/llama/ggml-rpc-server",
        "--host",
        "10.10.0.21",
        "--port",
        "50052",
        "--device",
        "CUDA0",
    )
    assert (first.node, first.role, first.env) == ("w1", Role.WORKER, {})
    assert value(second.argv, "--device") == "CUDA0,CUDA1"


def test_settings_of_a_worker_reach_its_command_line() -> None:
    nodes = NODES.replace("{name: w1,", "{name: w1, rpc: {port: 6000, threads: 8, cache: true}, env: {GGML_X: 1},")
    worker = planned(nodes=nodes).workers[0]
    assert value(worker.argv, "--port") == "6000"
    assert value(worker.argv, "--threads") == "8"
    assert "--cache" in worker.argv
    assert worker.env == {"GGML_X": "1", "LLAMA_CACHE": "/home/ops/.cache/clusterctl/demo"}


def test_settings_of_the_recipe_reach_the_head() -> None:
    text = RECIPE.replace("/models/demo.gguf", "~/m/demo.gguf, alias: nice") + (
        "parallel: 2\nserver: {host: 127.0.0.1, port: 9000, api_key_file: ~/key, extra_args: [--jinja]}\n"
    )
    argv = head_of(planned(text)).argv
    assert argv[0] == "/opt/llama/llama-server"
    assert value(argv, "--model") == "/home/ops/m/demo.gguf"
    assert value(argv, "--alias") == "nice"
    assert value(argv, "--api-key-file") == "/home/ops/key"
    assert (value(argv, "--ctx-size"), value(argv, "--parallel")) == ("4096", "2")
    assert (value(argv, "--host"), value(argv, "--port")) == ("127.0.0.1", "9000")
    assert argv[-1] == "--jinja"


def test_layers_that_stay_on_the_cpu_are_not_offloaded() -> None:
    argv = head_of(planned(RECIPE + "split: {cpu_layers: 4}\n")).argv
    assert value(argv, "--n-gpu-layers") == str(header().n_layer + 1 - 4)
    assert sum(int(part) for part in value(argv, "--tensor-split").split(",")) == header().n_layer + 1 - 4


@pytest.mark.parametrize("arguments", ["[--device=CUDA0]", "[--log-disable]", "[--list-devices]"])
def test_arguments_that_would_undo_the_plan_are_refused(arguments: str) -> None:
    with pytest.raises(ConfigError, match=r"server\.extra_args"):
        planned(RECIPE + f"server: {{extra_args: {arguments}}}\n")


@pytest.mark.parametrize("argument", ["--swa-full", "--swa_full"])
def test_a_full_cache_for_sliding_windows_is_counted_however_it_is_spelled(argument: str) -> None:
    assert not planned().workload.swa_full
    assert planned(RECIPE + f"server: {{extra_args: [{argument}]}}\n").workload.swa_full


def test_a_program_whose_help_cannot_be_read_stops() -> None:
    unreadable = {**of_build("b10434"), "head": facts("head", changes={"help": "core dumped"})}
    with pytest.raises(BuildSkew, match="head: the head's program prints no options"):
        make_plan(inventory(), recipe(), unreadable, Models(header(), None))
    mute = {**of_build("b10434"), "w1": facts("w1", changes={"worker_help": ""})}
    with pytest.raises(UsageError, match="w1: the worker program prints no usage"):
        make_plan(inventory(), recipe(), mute, Models(header(), None))


def test_names_are_expected_over_the_whole_list_of_workers() -> None:
    split = planned().split
    assert expected_names(split) == ("RPC0", "RPC1", "RPC2", "CUDA0")
    assert endpoints_of(split) == ("10.10.0.21:50052", "10.10.0.22:50052")


@pytest.mark.parametrize(("path", "found"), [("~/a", "/home/ops/a"), ("/a/~/b", "/a/~/b"), ("~x/a", "~x/a")])
def test_only_the_users_own_home_is_written_out(path: str, found: str) -> None:
    assert in_home(path, "/home/ops") == found


def seen(*rows: str) -> Listing:
    text = listing(*rows)
    return Listing(parse_devices(text) or (), text)


FIRST, SECOND = "10.10.0.21:50052 (24154 MiB, 23000 MiB free)", "10.10.0.22:50052 (24154 MiB, 23000 MiB free)"


def test_names_come_from_the_heads_own_listing() -> None:
    shuffled = seen(CUDA, f"RPC5: {SECOND}", f"RPC2: {FIRST}", f"RPC6: {SECOND}")
    assert match_devices(planned().split, shuffled) == ("RPC2", "RPC5", "RPC6", "CUDA0")


def test_builds_before_numbered_names_are_understood() -> None:
    nodes = NODES.replace("  - {name: w2, role: worker}\n", "")
    old = seen(CUDA, f"RPC[10.10.0.21:50052]: RPC[{FIRST.replace(' ', '] ', 1)}")
    assert match_devices(planned(nodes=nodes).split, old) == ("RPC[10.10.0.21:50052]", "CUDA0")


def test_a_worker_that_the_head_does_not_see_is_named() -> None:
    with pytest.raises(StartFailed, match=r"w2: the head does not see CUDA1 at 10\.10\.0\.22:50052") as caught:
        match_devices(planned().split, seen(CUDA, f"RPC0: {FIRST}", f"RPC1: {SECOND}"))
    assert "RPC1 (10.10.0.22:50052)" in caught.value.message


def test_memory_that_was_taken_meanwhile_is_noticed() -> None:
    taken = FIRST.replace("23000 MiB free", "1 MiB free")
    with pytest.raises(StartFailed, match="w1: CUDA0 has 1 MiB free now, but is to hold"):
        match_devices(planned().split, seen(CUDA, f"RPC0: {taken}", f"RPC1: {SECOND}", f"RPC2: {SECOND}"))
