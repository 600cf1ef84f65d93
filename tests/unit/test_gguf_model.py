"""What is made of headers: parts of one model, its layers and sizes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.errors import ModelFileError
from clusterctl.llama.gguf import GgufHeader, Tensor
from clusterctl.llama.gguf_cursor import Value
from clusterctl.llama.gguf_types import TENSOR_TYPES
from clusterctl.llama.model_header import ModelHeader
from clusterctl.llama.model_parts import part_names
from tests.unit.gguf_files import parse_header
from tests.unit.memory_truth import header_bytes, model_facts, model_header, model_names

F16 = TENSOR_TYPES[1]


def header(architecture: str, tensors: dict[str, tuple[int, ...]], **sizes: Value) -> GgufHeader:
    """A header of two layers, unless `sizes` say otherwise; `__` in their names stands for a dot."""
    values: dict[str, Value] = {"block_count": 2, "embedding_length": 64, **sizes}
    metadata = {f"{architecture}.{key.replace('__', '.')}": value for key, value in values.items()}
    return GgufHeader(
        file="model.gguf",
        version=3,
        metadata={"general.architecture": architecture, **metadata},
        tensors=tuple(Tensor(name, shape, F16, 0) for name, shape in tensors.items()),
        data_offset=0,
    )


def attention(layer: int) -> dict[str, tuple[int, ...]]:
    return {f"blk.{layer}.attn_q.weight": (64, 64), f"blk.{layer}.attn_k.weight": (64, 32)}


def two_parts() -> list[GgufHeader]:
    first = header("llama", {"token_embd.weight": (64, 100), **attention(0)})
    second = replace(header("llama", attention(1)), file="second.gguf", metadata={})
    count: dict[str, Value] = {"split.count": 2, "split.tensors.count": 5}
    return [
        replace(first, metadata={**first.metadata, **count, "split.no": 0}),
        replace(second, metadata={**count, "split.no": 1}),
    ]


def test_layers_and_sizes_of_all_shipped_models_are_right() -> None:
    for model in model_names():
        facts, found = model_facts()[model], model_header(model)
        loaded = found.n_layer - facts["n_layer_nextn"]
        assert [layer.weight_bytes for layer in found.layers[:loaded]] == facts["layer_bytes"][:loaded], model
        assert all(layer.weight_bytes == 0 for layer in found.layers[loaded:]), model
        assert [layer.is_sliding for layer in found.layers] == facts["is_swa"], model
        assert found.output_bytes == sum(facts["output_bytes"].values()), model
        assert found.input_bytes == sum(facts["input_bytes"].values()), model
        assert found.total_bytes == sum(facts["type_bytes"].values()), model
        assert (found.n_embd, found.n_vocab) == (facts["n_embd"], facts["n_vocab"]), model
        assert (found.context_train, found.n_expert) == (facts["n_ctx_train"], facts["n_expert"]), model


@pytest.mark.parametrize(
    ("model", "billions", "active_billions"),
    [
        ("deepseek-v3-Q4_K_M", 671.0, 37.0),
        ("qwen3-30b-a3b-Q4_K_M", 30.5, 3.0),
        ("mixtral-8x7b-Q4_K_M", 46.7, 12.8),
        ("llama31-8b-Q4_K_M", 8.03, 7.5),
    ],
)
def test_parameters_and_active_bytes_are_those_published(
    model: str, billions: float, active_billions: float
) -> None:
    found = model_header(model)
    assert found.n_parameters / 1e9 == pytest.approx(billions, rel=0.01)
    bytes_per_parameter = found.total_bytes / found.n_parameters
    assert found.active_bytes_per_token / bytes_per_parameter / 1e9 == pytest.approx(active_billions, rel=0.13)


def test_the_parts_of_a_model_are_named_from_any_of_them() -> None:
    names = part_names("/models/big-00002-of-00003.gguf")
    assert names == tuple(f"/models/big-0000{number}-of-00003.gguf" for number in (1, 2, 3))
    assert part_names("/models/big.gguf") == ("/models/big.gguf",)
    assert len(part_names("x-00001-of-00147.gguf")) == 147


@pytest.mark.parametrize("name", ["x-00004-of-00003.gguf", "x-00000-of-00003.gguf", "x-00000-of-00000.gguf"])
def test_impossible_part_numbers_are_refused(name: str) -> None:
    with pytest.raises(ModelFileError, match="there is no part"):
        part_names(name)


@given(st.text(max_size=60))
def test_any_other_name_is_a_model_in_one_file(name: str) -> None:
    if "-of-" not in name:
        assert part_names(name) == (name,)


def test_parts_are_merged() -> None:
    model = ModelHeader.from_parts(two_parts())
    assert model.n_layer == 2
    assert [layer.weight_bytes for layer in model.layers] == [2 * 64 * 96] * 2


@pytest.mark.parametrize(
    ("pick", "message"),
    [
        (lambda parts: parts[:1], "split.count is 2, but 1"),
        (lambda parts: parts[::-1], "split.no is 1, but 0"),
        (lambda parts: [parts[0], parts[0]], "split.no is 0, but 1"),
        (lambda parts: [parts[0], replace(parts[1], tensors=())], "split.tensors.count is 5, but 3"),
        (lambda parts: [parts[0], replace(parts[1], tensors=parts[0].tensors)], "in an earlier part"),
        (lambda _: [], "at least one file"),
    ],
)
def test_missing_wrong_or_doubled_parts_are_refused(
    pick: Callable[[list[GgufHeader]], list[GgufHeader]], message: str
) -> None:
    with pytest.raises(ModelFileError, match=message):
        ModelHeader.from_parts(pick(two_parts()))


def test_head_sizes_default_as_in_llama_cpp() -> None:
    layer = ModelHeader.from_parts([header("llama", attention(0), attention__head_count=4)]).layers[0]
    assert (layer.k_width, layer.v_width) == (64, 64)
    grouped = header("llama", attention(0), attention__head_count=4, attention__head_count_kv=2)
    assert ModelHeader.from_parts([grouped]).layers[0].k_width == 32


def test_layers_that_share_a_cache_keep_none() -> None:
    tensors = {**attention(0), **attention(1)}
    sizes: dict[str, Value] = {"attention__head_count": 4, "attention__shared_kv_layers": 1}
    model = ModelHeader.from_parts([header("gemma4", tensors, **sizes)])
    assert [layer.k_width for layer in model.layers] == [64, 0]


def test_a_windows_pattern_may_stand_in_the_file() -> None:
    sizes: dict[str, Value] = {"attention__head_count": 4, "attention__sliding_window": 512}
    tensors = {**attention(0), **attention(1)}
    listed = header("gemma4", tensors, **sizes, attention__sliding_window_pattern=(True, False))
    assert [layer.is_sliding for layer in ModelHeader.from_parts([listed]).layers] == [True, False]
    period = header("gemma3", tensors, **sizes, attention__sliding_window_pattern=2)
    assert [layer.is_sliding for layer in ModelHeader.from_parts([period]).layers] == [True, False]
    usual = header("gemma3", tensors, **sizes)
    assert [layer.is_sliding for layer in ModelHeader.from_parts([usual]).layers] == [True, True]


def test_hybrid_layers_are_told_apart_by_their_tensors() -> None:
    tensors: dict[str, tuple[int, ...]] = {
        "blk.0.ssm_in.weight": (64, 290),
        "blk.0.attn_qkv.weight": (64, 192),
        **attention(1),
    }
    sizes: dict[str, Value] = {
        "attention__head_count": 4,
        "ssm__conv_kernel": 4,
        "ssm__inner_size": 128,
        "ssm__state_size": 16,
        "ssm__group_count": 1,
    }
    recurrent, full = ModelHeader.from_parts([header("some-hybrid", tensors, **sizes)]).layers
    assert (recurrent.k_width, recurrent.state_width) == (0, 3 * (128 + 32) + 16 * 128)
    assert (full.k_width, full.state_width) == (64, 0)


def test_an_unknown_architecture_says_so() -> None:
    model = ModelHeader.from_parts([header("brand-new", attention(0), attention__sliding_window=512)])
    assert any("brand-new" in note and "not measured" in note for note in model.notes)
    assert any("window" in note for note in model.notes)
    assert not any(layer.is_sliding for layer in model.layers)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"block_count": 0}, "block_count is 0"),
        ({"block_count": 1 << 30}, "sane is 1 to"),
        ({"block_count": "two"}, "not a size"),
        ({"embedding_length": -1}, "not a size"),
        ({"block_count": 1}, "belongs to none of the 1 layers"),
        ({"attention__head_count": (1,)}, "1 values for 2 layers"),
    ],
)
def test_senseless_sizes_are_refused(sizes: dict[str, Value], message: str) -> None:
    with pytest.raises(ModelFileError, match=message):
        ModelHeader.from_parts([header("llama", {**attention(0), **attention(1)}, **sizes)])


def test_a_file_without_an_architecture_is_refused() -> None:
    with pytest.raises(ModelFileError, match="no architecture"):
        ModelHeader.from_parts([GgufHeader("projector.gguf", 3, {}, (), 0)])


@given(st.data())
def test_mutated_sizes_only_ever_raise_the_model_file_error(data: st.DataObject) -> None:
    model = data.draw(st.sampled_from(["granite4-h-small-Q4_K_M", "deepseek-v2-lite-Q8_0", "gemma3-27b-Q4_0"]))
    good = parse_header("model.gguf", header_bytes(model))
    key = data.draw(st.sampled_from(sorted(good.metadata)))
    values = st.one_of(
        st.integers(-5, 1 << 64),
        st.text(max_size=5),
        st.floats(),
        st.booleans(),
        st.tuples(st.integers(0, 9)),
    )
    bad = replace(good, metadata={**good.metadata, key: data.draw(values)})
    with suppress(ModelFileError):
        assert (
            ModelHeader.from_parts([bad]).n_layer
            == bad.metadata[f"{good.metadata['general.architecture']}.block_count"]
        )
