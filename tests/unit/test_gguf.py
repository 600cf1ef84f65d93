"""The GGUF header reader: real headers, files written by the gguf package, and damage of every kind."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from functools import cache
from pathlib import Path

import gguf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.errors import ModelFileError
from clusterctl.llama.gguf import ByteRange, GgufHeader, read_header
from clusterctl.llama.gguf_cursor import KEPT_ARRAY_LIMIT, OmittedArray, Value
from clusterctl.llama.gguf_types import TENSOR_TYPES
from tests.unit.gguf_files import parse_header
from tests.unit.memory_truth import header_bytes, model_facts, model_names

# Never in a file; the gguf package still has the size of an older layout.
NOT_IN_FILES = {"Q8_1"}


def feed(
    data: bytes, chunk: int | None = None, file_bytes: int | None = None
) -> tuple[GgufHeader, list[ByteRange]]:
    """Read a header from `data` as a remote side would serve it, at most `chunk` bytes at a time."""
    reader = read_header("model.gguf", file_bytes)
    asked = [next(reader)]
    while True:
        wanted = asked[-1]
        end = wanted.offset + min(wanted.length, chunk or wanted.length)
        try:
            asked.append(reader.send(data[wanted.offset : end]))
        except StopIteration as done:
            header: GgufHeader = done.value
            return header, asked


def write_model(path: Path, tensors: int = 3) -> Path:
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(2)
    writer.add_name("grüße")
    writer.add_array("llama.some.list", [1, 2, 3])
    writer.add_array("llama.some.flags", [True, False])
    writer.add_array("llama.some.floats", [0.5, 2.0])
    writer.add_int64("llama.negative", -5)
    writer.add_float64("llama.double", 0.1)
    writer.add_bool("llama.yes", True)
    writer.add_token_list([f"token {number}" for number in range(300)])
    for number in range(tensors):
        writer.add_tensor(f"blk.{number}.weight", np.zeros((3, 5 + number), dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@cache
def small_model() -> bytes:
    """A short but complete header: every kind of value, no data."""

    def text(value: bytes) -> bytes:
        return struct.pack("<Q", len(value)) + value

    values = [
        text(b"general.architecture") + struct.pack("<I", 8) + text(b"llama"),
        text(b"a.number") + struct.pack("<II", 4, 7),
        text(b"a.float") + struct.pack("<If", 6, 1.5),
        text(b"an.array") + struct.pack("<IIQ3H", 9, 2, 3, 1, 2, 3),
        text(b"nested") + struct.pack("<IIQIQIQB", 9, 9, 2, 4, 0, 0, 1, 9),
        text(b"some.tokens") + struct.pack("<IIQ", 9, 8, 2) + text(b"hello") + text(b"\xff\xfe"),
    ]
    tensors = [
        text(b"token_embd.weight") + struct.pack("<I2QIQ", 2, 32, 4, 8, 0),
        text(b"output_norm.weight") + struct.pack("<IQIQ", 1, 32, 0, 160),
    ]
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(values))
    return head + b"".join(values) + b"".join(tensors)


def test_every_shipped_header_is_read_as_another_reader_reads_it() -> None:
    for model in model_names():
        facts = model_facts()[model]
        header, _ = feed(header_bytes(model), file_bytes=facts["file_bytes"])
        assert header.data_offset == facts["header_bytes"], model
        assert len(header.tensors) == facts["n_tensors"], model
        sizes: dict[str, int] = {}
        for tensor in header.tensors:
            sizes[tensor.type.name] = sizes.get(tensor.type.name, 0) + tensor.size_bytes
        assert sizes == facts["type_bytes"], model
        tokens = header.metadata.get("tokenizer.ggml.tokens")
        if facts["n_tokens_array"]:
            assert isinstance(tokens, OmittedArray)
            assert tokens.length == facts["n_tokens_array"]


def real_models() -> list[Path]:
    """The model that CLUSTERCTL_MODEL names; the shipped header of a real model is always read above."""
    path = os.environ.get("CLUSTERCTL_MODEL")
    return [Path(path)] if path else []


def test_the_gguf_package_reads_the_same_from_a_file(tmp_path: Path) -> None:
    for path in (write_model(tmp_path / "model.gguf"), *real_models()):
        header, _ = feed(path.read_bytes(), file_bytes=path.stat().st_size)
        reader = gguf.GGUFReader(path)
        assert header.data_offset == reader.data_offset
        assert [
            (tensor.name, list(tensor.shape), tensor.type.name, tensor.size_bytes) for tensor in header.tensors
        ] == [(it.name, it.shape.tolist(), it.tensor_type.name, it.n_bytes) for it in reader.tensors]
        for key, field in reader.fields.items():
            if not key.startswith("GGUF."):
                assert_same(header.metadata[key], field.contents())


def assert_same(value: Value, expected: object) -> None:
    if isinstance(value, OmittedArray):
        assert isinstance(expected, list)
        assert value.length == len(expected)
    else:
        assert (list(value) if isinstance(value, tuple) else value) == expected


def test_all_types_of_the_gguf_package_are_known() -> None:
    known = {kind.name: (kind.block_elements, kind.block_bytes) for kind in TENSOR_TYPES.values()}
    for kind in gguf.GGMLQuantizationType:
        assert TENSOR_TYPES[kind.value].name == kind.name
        if kind.name not in NOT_IN_FILES:
            assert known[kind.name] == gguf.GGML_QUANT_SIZES[kind]


def test_a_big_vocabulary_takes_few_reads_and_none_of_the_data() -> None:
    data = header_bytes("gemma3-270m-Q4_K_M")
    header, asked = feed(data + bytes(50_000_000))
    assert len(asked) <= 5
    assert asked[-1].offset + asked[-1].length < header.data_offset + 4 * 1024 * 1024


def test_the_last_read_does_not_go_beyond_the_file() -> None:
    data = small_model()
    _, asked = feed(data + bytes(1000), file_bytes=len(data) + 1000)
    assert [(wanted.offset, wanted.length) for wanted in asked] == [(0, len(data) + 1000)]


@given(st.integers(1, 400))
def test_the_size_of_replies_does_not_matter(chunk: int) -> None:
    assert feed(small_model(), chunk)[0].tensors == feed(small_model())[0].tensors


def test_long_arrays_of_numbers_are_not_kept(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "scores.gguf", "llama")
    writer.add_token_scores([0.5] * (KEPT_ARRAY_LIMIT + 1))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    scores = parse_header("scores.gguf", (tmp_path / "scores.gguf").read_bytes()).metadata["tokenizer.ggml.scores"]
    assert isinstance(scores, OmittedArray)
    assert scores.length == KEPT_ARRAY_LIMIT + 1


def test_version_2_is_read_and_version_1_is_not() -> None:
    data = bytearray(small_model())
    data[4:8] = struct.pack("<I", 2)
    assert parse_header("old.gguf", bytes(data)).version == 2
    data[4:8] = struct.pack("<I", 1)
    with pytest.raises(ModelFileError, match="version 1"):
        parse_header("old.gguf", bytes(data))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: b"GGML" + data[4:], "begins with `GGML`"),
        (lambda data: b"<htm" + data[4:], "not a GGUF file"),
        (lambda data: b"\xff\xfe<?" + data[4:], r"begins with `\\xff\\xfe<\?`"),
        (lambda data: data[:4] + struct.pack(">I", 3) + data[8:], "big-endian"),
        (lambda data: data[:8] + struct.pack("<Q", 1 << 60) + data[16:], "the file is cut short: it ends"),
        (lambda data: data.replace(b"a.number\x04", b"a.number\x63"), "unknown value type 99"),
        (lambda data: data.replace(b"a.number", b"an.array"), "occurs twice"),
        (lambda data: data.replace(b"an.array\x09\0\0\0\x02", b"an.array\x09\0\0\0\x63"), "array type 99"),
        (lambda data: data.replace(struct.pack("<IQ", 8, 0), struct.pack("<IQ", 5, 0)), "unknown type 5"),
        (
            lambda data: data.replace(struct.pack("<QQI", 32, 4, 8), struct.pack("<QQI", 33, 4, 8)),
            "whole blocks",
        ),
        (
            lambda data: data.replace(struct.pack("<QQ", 32, 4), struct.pack("<QQ", 32, 1 << 60)),
            "larger than",
        ),
        (lambda data: data.replace(struct.pack("<IQ", 0, 160), struct.pack("<IQ", 0, 192)), "expected 160"),
        (
            lambda data: data.replace(struct.pack("<I2Q", 2, 32, 4), struct.pack("<I2Q", 7, 32, 4)),
            "7 dimensions",
        ),
    ],
)
def test_damage_is_named_with_file_and_byte(change: Callable[[bytes], bytes], message: str) -> None:
    data = change(small_model())
    assert data != small_model()
    with pytest.raises(ModelFileError, match=message) as caught:
        parse_header("/models/broken.gguf", data)
    assert str(caught.value).startswith("/models/broken.gguf: byte ")
    assert caught.value.exit_code == 2
    assert caught.value.hint


def test_a_file_that_is_shorter_than_its_tensors_is_refused() -> None:
    data = small_model()
    with pytest.raises(ModelFileError, match=r"cut short: it has \d+ bytes, but its tensor data ends at"):
        feed(data + bytes(100), file_bytes=len(data) + 100)


def test_a_hostile_string_length_is_refused_before_it_is_read() -> None:
    data = small_model().replace(struct.pack("<Q", 5) + b"hello", struct.pack("<Q", 1 << 63) + b"hello")
    with pytest.raises(ModelFileError, match="must end by"):
        parse_header("hostile.gguf", data)


def test_a_file_cut_within_its_header_is_told_to_be_cut_short() -> None:
    data = small_model()[:200]
    with pytest.raises(ModelFileError, match="the file is cut short"):
        feed(data, file_bytes=len(data))


def test_deeply_nested_arrays_are_refused() -> None:
    nested = struct.pack("<IQ", 9, 1) * 100
    head = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 1) + b"k" + struct.pack("<I", 9)
    with pytest.raises(ModelFileError, match="nested deeper"):
        parse_header("hostile.gguf", head + nested)


@given(st.integers(0, len(small_model()) - 1))
def test_a_truncated_header_is_always_an_error(length: int) -> None:
    with pytest.raises(ModelFileError):
        parse_header("cut.gguf", small_model()[:length])


def reads_or_refuses(data: bytes) -> None:
    try:
        header = parse_header("fuzz.gguf", data)
    except ModelFileError:
        return
    assert header.data_offset <= len(data) + 4096 or header.metadata.get("general.alignment")


@given(st.binary(max_size=400))
def test_arbitrary_bytes_only_ever_raise_the_model_file_error(data: bytes) -> None:
    reads_or_refuses(data)
    reads_or_refuses(b"GGUF" + struct.pack("<I", 3) + data)


@given(st.lists(st.tuples(st.integers(4, len(small_model()) - 1), st.integers(0, 255)), min_size=1, max_size=6))
def test_mutated_headers_only_ever_raise_the_model_file_error(changes: list[tuple[int, int]]) -> None:
    data = bytearray(small_model())
    for position, value in changes:
        data[position] = value
    reads_or_refuses(bytes(data))
