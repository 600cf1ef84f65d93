"""Which arguments and variables of llama-server a user may give beside the plan."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.llama.arguments import argument_refusal, option_of, secrets_in, variable_refusal

HELP = Path(__file__).parents[1] / "data" / "help"
SPELLING = re.compile(r"(?<![\w-])--?[A-Za-z][\w.-]*")
# For these a variable is the right place: no other user sees it.
SECRET_VARIABLES = {"LLAMA_API_KEY", "HF_TOKEN"}


def variables_of_options(build: str) -> dict[str, str]:
    """Every option that has a variable, as the build's own help tells it."""
    found: dict[str, str] = {}
    options: list[str] = []
    for line in gzip.decompress((HELP / f"llama-server.{build}.txt.gz").read_bytes()).decode().splitlines():
        if line.startswith("-"):
            options = SPELLING.findall(re.split(r"(?<!,)\s{2,}", line)[0])
        elif variable := re.search(r"\(env: (\w+)\)", line):
            found |= dict.fromkeys(options, variable[1])
    return found


@pytest.mark.parametrize("argument", ["--jinja", "--temp", "0.7", "-1", "", "--swa-full", "--api-prefix", "c"])
def test_what_changes_no_plan_may_be_given(argument: str) -> None:
    assert argument_refusal(argument) is None


@pytest.mark.parametrize(
    ("argument", "word"),
    [
        ("-sm", "only `layer`"),
        ("--split_mode", "only `layer`"),
        ("-sm=row", "only `layer`"),
        ("-ot", "split"),
        ("--rpc", "inventory"),
        ("-ts", "plan"),
        ("-fitt", "plan"),
        ("-m", "`model.path`"),
        ("-mu", "`model.path`"),
        ("-hf", "`model.path`"),
        ("-md", "`draft`"),
        ("--host", "`server`"),
        ("-c", "`context`"),
        ("-nkvo", "KV cache"),
        ("--no_kv_offload", "KV cache"),
        ("-cmoe", "weights"),
        ("--n-cpu-moe", "weights"),
        ("--mmproj", "projector"),
        ("--lora", "adapter"),
        ("--embeddings", "output"),
        ("-ctkd", "draft model"),
        ("--api-key", "secret"),
        ("--list-devices", "ends"),
    ],
)
def test_what_would_undo_a_plan_or_make_it_wrong_is_refused_with_the_reason(argument: str, word: str) -> None:
    assert word in (argument_refusal(argument) or "")


@pytest.mark.parametrize("build", ["b10068", "b10092", "b10434"])
def test_a_variable_is_refused_as_its_option_is(build: str) -> None:
    told = variables_of_options(build)
    assert len(told) > 150
    refused = {variable for option, variable in told.items() if argument_refusal(option)}
    assert set(filter(variable_refusal, told.values())) == (refused - SECRET_VARIABLES | {"LLAMA_ARG_SWA_FULL"})
    for option, variable in told.items():
        if variable not in SECRET_VARIABLES | {"LLAMA_ARG_SWA_FULL"}:
            assert variable_refusal(variable) == argument_refusal(option)


@pytest.mark.parametrize("name", ["LLAMA_ARG_NO_KV_OFFLOAD", "LLAMA_ARG_NO_MMAP", "LLAMA_ARG_NO_KV_UNIFIED"])
def test_the_variable_of_an_opposite_is_refused_too(name: str) -> None:
    assert variable_refusal(name)


@pytest.mark.parametrize(
    "name", ["LLAMA_API_KEY", "LLAMA_ARG_NO_HOST", "LLAMA_ARG_THREADS", "LLAMA_CACHE", "GGML_RPC_NO_RDMA", ""]
)
def test_other_variables_may_be_set(name: str) -> None:
    assert variable_refusal(name) is None


@pytest.mark.parametrize(
    ("arguments", "secrets"),
    [
        (["--jinja", "--api-key", "one,two", "--top-k", "3"], {"one", "two"}),
        (["--api_key=one"], {"one"}),
        (["-hft", "one"], {"one"}),
        (["--api-key"], set()),
        (["--api-key-file", "/keys"], set()),
    ],
)
def test_the_words_of_secrets_are_found_in_a_call(arguments: list[str], secrets: set[str]) -> None:
    assert secrets_in(arguments) == secrets


@given(st.lists(st.text(max_size=20) | st.sampled_from(["--api-key", "-c", "--a_b=c"]), max_size=8))
def test_any_arguments_can_be_judged(arguments: list[str]) -> None:
    assert "" not in secrets_in(arguments)
    for argument in arguments:
        assert argument_refusal(argument) == argument_refusal(option_of(argument))
