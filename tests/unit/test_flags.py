"""Options read from real `--help` outputs, and settings spelled with them."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterctl.errors import UsageError
from clusterctl.llama.arguments import argument_refusal
from clusterctl.llama.flags import (
    Flags,
    UnknownSetting,
    parse_help,
    parse_worker_usage,
    spell,
)

DATA = Path(__file__).parents[1] / "data" / "help"
TABLE = Path(__file__).parents[2] / "clusterctl" / "llama" / "flags.yaml"
BUILDS = ("b10068", "b10092", "b10434")

# The form of other ages, in the words of their own help.
AGED_HELP = """\
-m,    --model FNAME                    model path
-c,    --ctx-size N                     size of the prompt context (default: 4096)
-fa,   --flash-attn                     enable Flash Attention (default: disabled)
                                        (env: LLAMA_ARG_FLASH_ATTN)
--mlock                                 force system to keep model in RAM
--no-mmap                               do not memory-map model
--draft-max, --draft, --draft-n N       number of tokens to draft for speculative decoding (default: 16)
-md,   --model-draft FNAME              draft model for speculative decoding (default: unused)
-devd, --device-draft <dev1,dev2,..>    comma-separated list of devices to use for the draft model
--port PORT                             port to listen (default: 8080)
"""
NEW_HELP = """\
-m,    --model FNAME                    model path to load
-c,    --ctx-size N                     size of the prompt context
-lm,   --load-mode MODE                 model loading mode (default: auto)
                                        - auto: mmap, unless a device does not support it
                                        - none: no special loading mode
"""
AGED_WORKER = """\
Usage: bin/rpc-server [options]

options:
  -h, --help                show this help message and exit
  -t,      --threads        number of threads for the CPU backend (default: 4)
  -d DEV,  --device         device to use
  -H HOST, --host HOST      host to bind to (default: 127.0.0.1)
  -p PORT, --port PORT      port to bind to (default: 50052)
  -m MEM,  --mem MEM        backend memory size (in MB)
  -c,      --cache          enable local file cache
"""


def recorded(program: str, build: str) -> str:
    return gzip.decompress((DATA / f"{program}.{build}.txt.gz").read_bytes()).decode()


def server(build: str) -> Flags:
    flags = parse_help(recorded("llama-server", build))
    assert flags is not None
    return flags


def flags_of(text: str) -> Flags:
    flags = parse_help(text)
    assert flags is not None
    return flags


def worker(text: str) -> Flags:
    flags = parse_worker_usage(text)
    assert flags is not None
    return flags


@pytest.mark.parametrize("build", BUILDS)
def test_the_help_of_a_real_build_yields_hundreds_of_spellings(build: str) -> None:
    flags = server(build)
    assert len(flags.options) > 350
    assert {"-m", "--model", "-ts", "--tensor-split", "--rpc", "-dev", "--port"} <= flags.options.keys()


@pytest.mark.parametrize("build", BUILDS)
def test_listed_values_are_read_in_each_of_their_forms(build: str) -> None:
    options = server(build).options
    assert options["--flash-attn"].choices == ("on", "off", "auto")
    assert options["--split-mode"].choices == ("none", "layer", "row", "tensor")
    assert options["--cache-type-k"].choices[-2:] == ("q5_0", "q5_1")
    assert "draft-simple" in options["--spec-type"].choices
    assert options["--cpu-strict"].choices == ("0", "1")
    assert options["--tensor-split"].choices == options["--device"].choices == ()


def test_values_listed_as_bullets_are_read() -> None:
    assert server("b10434").options["-lm"].choices == ("auto", "none", "mmap", "mlock", "mmap+mlock", "dio")


@pytest.mark.parametrize("build", BUILDS)
def test_an_option_whose_help_says_removed_counts_as_absent(build: str) -> None:
    assert "the argument has been removed" in recorded("llama-server", build)
    assert "--draft-max" not in server(build)
    assert "--spec-draft-n-max" in server(build)


def test_a_deprecated_option_exists_and_is_marked() -> None:
    assert server("b10434").options["--no-mmap"].deprecated
    assert not server("b10068").options["--no-mmap"].deprecated


def test_switches_take_no_value_and_options_with_a_placeholder_do() -> None:
    options = server("b10434").options
    assert not options["--metrics"].takes_value
    assert options["-ot"].takes_value
    assert options["--spec-draft-model"].takes_value
    assert not flags_of(AGED_HELP).options["-fa"].takes_value


@pytest.mark.parametrize(
    "text", ["", "bash: llama-server: command not found\n", "version: 1 (571d0d5)\n", AGED_WORKER]
)
def test_other_output_is_no_help(text: str) -> None:
    assert parse_help(text) is None


def test_a_servers_help_is_no_worker_usage() -> None:
    assert parse_worker_usage(recorded("llama-server", "b10434")) is None
    assert parse_worker_usage("error: unknown argument: --usage\n") is None


@pytest.mark.parametrize(
    ("build", "mode", "expected"),
    [
        ("b10434", "dio", ("--load-mode", "dio")),
        ("b10434", "none", ("--load-mode", "none")),
        ("b10434", "auto", ("--load-mode", "auto")),
        ("b10068", "dio", ("--direct-io",)),
        ("b10068", "none", ("--no-mmap",)),
        ("b10068", "mlock", ("--mlock",)),
        ("b10068", "mmap", ()),
        ("b10068", "auto", ()),
    ],
)
def test_the_load_mode_is_spelled_as_the_build_knows_it(build: str, mode: str, expected: tuple[str, ...]) -> None:
    assert spell(server(build), {"load_mode": mode}) == expected


@pytest.mark.parametrize(("wanted", "expected"), [("on", ("--flash-attn",)), ("off", ()), ("auto", ())])
def test_flash_attention_was_a_bare_switch_once(wanted: str, expected: tuple[str, ...]) -> None:
    assert spell(flags_of(AGED_HELP), {"flash_attention": wanted}) == expected


def test_flash_attention_is_never_bare_where_it_takes_a_value() -> None:
    assert spell(server("b10068"), {"flash_attention": "on"}) == ("--flash-attn", "on")


def test_fit_is_left_out_where_the_build_can_not_fit_anyway() -> None:
    assert spell(server("b10434"), {"fit": "off"}) == ("--fit", "off")
    assert spell(flags_of(AGED_HELP), {"fit": "off"}) == ()


def test_a_unified_cache_follows_the_ages_of_its_option() -> None:
    only_on = flags_of(AGED_HELP + "-kvu, --kv-unified    use single unified KV buffer (default: false)\n")
    assert spell(server("b10434"), {"kv_unified": False}) == ("--no-kv-unified",)
    assert spell(server("b10434"), {"kv_unified": True}) == ("--kv-unified",)
    assert spell(only_on, {"kv_unified": False}) == ()
    assert spell(flags_of(AGED_HELP), {"kv_unified": True}) == ()
    with pytest.raises(UnknownSetting, match="--no-kv-unified"):
        spell(flags_of(AGED_HELP), {"kv_unified": False})


def test_a_draft_model_has_its_historical_spellings() -> None:
    wanted: Mapping[str, str | int | bool] = {
        "draft_model": "/d.gguf",
        "draft_max_tokens": 8,
        "draft_device": "CUDA0",
        "draft_type": "draft-simple",
    }
    assert spell(flags_of(AGED_HELP), wanted) == (
        *("--model-draft", "/d.gguf"),
        *("--draft-max", "8"),
        *("--device-draft", "CUDA0"),
    )
    assert spell(server("b10434"), wanted) == (
        *("--spec-type", "draft-simple"),
        *("--spec-draft-model", "/d.gguf"),
        *("--spec-draft-n-max", "8"),
        *("--spec-draft-device", "CUDA0"),
    )


def test_drafting_from_the_text_needs_no_model() -> None:
    wanted: Mapping[str, str | int | bool] = {"draft_type": "ngram-mod", "ngram_mod_max_tokens": 48}
    assert spell(server("b10092"), wanted) == ("--spec-type", "ngram-mod", "--spec-ngram-mod-n-max", "48")
    with pytest.raises(UnknownSetting, match="draft_type"):
        spell(flags_of(AGED_HELP), wanted)


@pytest.mark.parametrize("build", BUILDS)
def test_rpc_comes_first_then_the_devices_then_the_split(build: str) -> None:
    wanted: Mapping[str, str | int | bool] = {
        "port": 8080,
        "tensor_split": "16,15",
        "model": "/m.gguf",
        "device": "RPC0,CUDA0",
        "rpc": "10.0.0.2:50052",
    }
    argv = spell(server(build), wanted)
    assert argv[:6] == ("--rpc", "10.0.0.2:50052", "--device", "RPC0,CUDA0", "--tensor-split", "16,15")
    assert set(argv[6:]) == {"--port", "8080", "--model", "/m.gguf"}


def test_a_value_goes_into_one_argument_whatever_it_holds() -> None:
    assert spell(server("b10434"), {"alias": "a b'{value}\n"}) == ("--alias", "a b'{value}\n")


def test_a_missing_option_is_named_with_the_builds_that_have_it() -> None:
    with pytest.raises(UnknownSetting) as caught:
        spell(flags_of(NEW_HELP), {"draft_max_tokens": 4})
    assert isinstance(caught.value, UsageError)
    assert caught.value.exit_code == 2
    assert "draft_max_tokens" in str(caught.value)
    assert "--spec-draft-n-max" in str(caught.value)
    assert "b9093" in (caught.value.hint or "")


def test_a_value_that_the_build_does_not_list_is_refused_with_those_it_lists() -> None:
    with pytest.raises(UnknownSetting) as caught:
        spell(server("b10434"), {"cache_type_k": "q9_9"})
    assert "q8_0" in (caught.value.hint or "")


def test_a_setting_that_nobody_knows_is_refused() -> None:
    with pytest.raises(UnknownSetting, match="colour"):
        spell(server("b10434"), {"colour": "red"})


@pytest.mark.parametrize("build", BUILDS)
def test_a_worker_is_told_its_address_port_devices_threads_and_cache(build: str) -> None:
    wanted: Mapping[str, str | int | bool] = {
        "host": "10.0.0.2",
        "port": 50052,
        "devices": "ROCm0",
        "threads": 8,
        "cache": True,
    }
    assert spell(worker(recorded("ggml-rpc-server", build)), wanted) == (
        *("--host", "10.0.0.2"),
        *("--port", "50052"),
        *("--device", "ROCm0"),
        *("--threads", "8"),
        "--cache",
    )


def test_a_worker_of_old_lists_its_values_beside_the_short_names() -> None:
    wanted: Mapping[str, str | int | bool] = {"host": "10.0.0.2", "port": 50052, "threads": 8, "cache": False}
    argv = spell(worker(AGED_WORKER), wanted)
    assert argv == ("--host", "10.0.0.2", "--port", "50052", "--threads", "8")


def test_more_is_logged_only_where_the_help_lists_the_level() -> None:
    assert spell(server("b10434"), {"verbosity": "trace"}) == ("--verbosity", "4")
    assert spell(flags_of(AGED_HELP), {"verbosity": "trace"}) == ()


def test_no_spelling_that_clusterctl_uses_is_left_to_the_user() -> None:
    table = yaml.safe_load(TABLE.read_text("utf-8"))
    used = {form["argv"][0] for forms in table["llama-server"].values() for form in forms if form["argv"]}
    left = {option for option in used if argument_refusal(option) is None}
    assert left == {"--metrics", "--no-warmup"}  # a second one changes nothing


HELP_LINES = recorded("llama-server", "b10434").splitlines()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(HELP_LINES) | st.text(max_size=60), max_size=60))
def test_no_mutation_of_a_help_text_breaks_the_reader(lines: list[str]) -> None:
    text = "\n".join(lines)
    flags = parse_help(text)
    parse_worker_usage(text)
    if flags is not None:
        assert all(spelling.startswith("-") and " " not in spelling for spelling in flags.options)
