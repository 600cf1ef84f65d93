"""Which node becomes the head, in which words."""

from __future__ import annotations

import pytest

from clusterctl.cluster.head_choice import choose_head
from clusterctl.errors import UsageError
from tests.unit.init_sites import BIN, LLVMPIPE, RTX_3090, STRIX, recorded_help, site

GIB = 1024**3


def test_the_node_with_the_model_is_the_head_though_another_is_faster() -> None:
    choice = choose_head(
        [site("rtx", cards=(RTX_3090,)), site("strix", cards=(STRIX,), models={"/models/m.gguf": GIB})]
    )
    assert (choice.name, choice.reason) == ("strix", "it holds a model file (1.0 GiB, /models/m.gguf)")


def test_of_two_with_models_the_one_with_the_faster_device_is_the_head() -> None:
    models = {"/models/a.gguf": GIB, "/models/b.gguf": 3 * GIB}
    choice = choose_head(
        [site("bare"), site("strix", cards=(STRIX,), models=models), site("rtx", cards=(RTX_3090,), models=models)]
    )
    assert choice.name == "rtx"
    assert choice.reason == (
        "it holds 2 model files (4.0 GiB, the largest /models/b.gguf)"
        " and has the fastest device (CUDA0, NVIDIA GeForce RTX 3090, 936 GB/s)"
    )


def test_of_equally_fast_ones_the_one_with_more_memory_is_the_head() -> None:
    second = RTX_3090.replace("CUDA0", "CUDA1")
    choice = choose_head([site("one", cards=(RTX_3090,)), site("two", cards=(RTX_3090, second))])
    assert (choice.name, choice.reason, choice.equals) == ("two", "it has the most device memory (47 GiB)", ())


def test_a_graphics_driver_in_software_counts_as_no_device() -> None:
    choice = choose_head([site("soft", cards=(LLVMPIPE,)), site("plain")])
    assert choice.equals == ("plain",)


def test_between_equals_the_first_is_taken_and_the_others_are_named() -> None:
    choice = choose_head([site("a"), site("b"), site("c")])
    assert (choice.name, choice.equals) == ("a", ("b", "c"))
    assert choice.reason == "it is named before b, c, with which it is level"


def test_only_a_node_that_can_serve_is_considered() -> None:
    without_rpc = recorded_help("llama-server").replace("--rpc", "--other")
    choice = choose_head(
        [site("rtx", cards=(RTX_3090,), help_text=without_rpc), site("bare", server=None), site("nas")]
    )
    assert (choice.name, choice.reason) == ("nas", "it is the only node with a llama-server that knows --rpc")


def test_a_single_node_serves_without_rpc() -> None:
    without_rpc = recorded_help("llama-server").replace("--rpc", "--other")
    assert choose_head([site("one", help_text=without_rpc)]).reason == "it is the only node"


def test_a_llama_server_that_does_not_start_is_no_head() -> None:
    with pytest.raises(UsageError, match="no head is possible: none of a, b has a llama-server with --rpc"):
        choose_head([site("a", help_text="error while loading shared libraries"), site("b", server=None)])


def test_the_unified_program_serves_as_well() -> None:
    choice = choose_head([site("a", server=f"{BIN}/llama"), site("b", server=None)])
    assert choice.name == "a"
