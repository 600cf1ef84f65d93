"""Reads the header of a GGUF file without doing I/O: it asks for byte ranges and is fed bytes.

The header (key-values and tensor infos) stands before the tensor data, so a few ranged reads from the start
of the file are enough, over SSH as well. Vocabularies are stepped over, not decoded: only their length is
kept. The format is that of ggml's docs/gguf.md, versions 2 and 3, little endian.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from math import prod
from typing import TypeVar

from clusterctl.llama.gguf_cursor import NAME_LIMIT_BYTES, U32, Cursor, ShortBuffer, Value
from clusterctl.llama.gguf_types import TENSOR_TYPES, TensorType

FIRST_READ_BYTES = 256 * 1024
LARGEST_READ_BYTES = 4 * 1024 * 1024
VERSIONS = (2, 3)
DIMENSIONS_LIMIT = 4
TENSOR_BYTES_LIMIT = 1 << 62
DEFAULT_ALIGNMENT = 32

Parsed = TypeVar("Parsed")


@dataclass(frozen=True, slots=True)
class ByteRange:
    """Bytes of the file that the reader wants next."""

    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor as the header describes it; `offset` counts from the start of the tensor data."""

    name: str
    shape: tuple[int, ...]
    type: TensorType
    offset: int

    @property
    def elements(self) -> int:
        """Number of values."""
        return prod(self.shape)

    @property
    def outputs(self) -> int:
        """Width of the result, if the tensor is a matrix to multiply with, else 0."""
        return self.shape[1] if len(self.shape) > 1 else 0

    @property
    def size_bytes(self) -> int:
        """Size of the data, without the padding that follows it."""
        return self.type.row_bytes(self.elements)


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """Everything a GGUF file says before its tensor data, which begins at byte `data_offset`."""

    file: str
    version: int
    metadata: Mapping[str, Value]
    tensors: tuple[Tensor, ...]
    data_offset: int


def read_header(file: str, file_bytes: int | None = None) -> Generator[ByteRange, bytes, GgufHeader]:
    """Read the header of `file`: yields the range it wants, is sent those bytes, returns the header.

    A reply may be shorter than asked, the rest is then asked for again; an empty reply means end of file.
    With `file_bytes` known, the tensor data is checked to lie within the file.
    Raises `ModelFileError`, with the byte offset, for anything that is not a whole and sane header.
    """
    cursor = Cursor(file, file_bytes)
    version, tensor_count, value_count = yield from _feed(cursor, _preamble)
    metadata: dict[str, Value] = {}
    for _ in range(value_count):
        key, value = yield from _feed(cursor, _key_value)
        if key in metadata:
            raise cursor.error(f"the key {key!r} occurs twice")
        metadata[key] = value
    alignment = _alignment(cursor, metadata)
    tensors: dict[str, Tensor] = {}
    data_bytes = 0
    for _ in range(tensor_count):
        tensor = yield from _feed(cursor, _tensor)
        if tensor.name in tensors:
            raise cursor.error(f"the tensor {tensor.name!r} occurs twice")
        if tensor.offset != data_bytes:
            raise cursor.error(f"the data of {tensor.name!r} is at {tensor.offset}, expected {data_bytes}")
        tensors[tensor.name] = tensor
        data_bytes = _padded(tensor.offset + tensor.size_bytes, alignment)
    header = GgufHeader(file, version, metadata, tuple(tensors.values()), _padded(cursor.position, alignment))
    _check_data_end(cursor, header, file_bytes)
    return header


def _feed(cursor: Cursor, parse: Callable[[Cursor], Parsed]) -> Generator[ByteRange, bytes, Parsed]:
    """Parse one entry; if the buffer ends within it, ask for more bytes and parse it again."""
    start = cursor.position
    while True:
        try:
            return parse(cursor)
        except ShortBuffer as short:
            cursor.position = start
            held = len(cursor.buffer)
            wanted = max(short.missing, FIRST_READ_BYTES, min(3 * held, LARGEST_READ_BYTES))
            received = yield ByteRange(held, min(wanted, cursor.limit - held))
            if not received:
                raise cursor.error(f"the file is cut short: it ends at byte {held}, within its header") from None
            cursor.buffer += received


def _preamble(cursor: Cursor) -> tuple[int, int, int]:
    cursor.need(4)
    magic = bytes(cursor.buffer[:4])
    if magic != b"GGUF":
        text = magic.decode("ascii", errors="backslashreplace")
        raise cursor.error(f"not a GGUF file: it begins with `{text}`")
    cursor.position += 4
    version = cursor.count(U32)
    if version not in VERSIONS and int.from_bytes(version.to_bytes(4, "little"), "big") in VERSIONS:
        raise cursor.error("a big-endian GGUF file; only little-endian machines can be planned for")
    if version not in VERSIONS:
        raise cursor.error(f"GGUF version {version}; known are 2 and 3")
    return version, cursor.count(), cursor.count()


def _key_value(cursor: Cursor) -> tuple[str, Value]:
    key = cursor.text(NAME_LIMIT_BYTES)
    return key, cursor.value(cursor.count(U32))


def _alignment(cursor: Cursor, metadata: Mapping[str, Value]) -> int:
    alignment = metadata.get("general.alignment", DEFAULT_ALIGNMENT)
    if not isinstance(alignment, int) or alignment < 1 or alignment & (alignment - 1):
        raise cursor.error(f"general.alignment is {alignment!r}, which is no power of two")
    return alignment


def _tensor(cursor: Cursor) -> Tensor:
    name = cursor.text(NAME_LIMIT_BYTES)
    dimensions = cursor.count(U32)
    if dimensions > DIMENSIONS_LIMIT:
        raise cursor.error(f"the tensor {name!r} has {dimensions} dimensions, ggml knows {DIMENSIONS_LIMIT}")
    shape = tuple(cursor.count() for _ in range(dimensions))
    number = cursor.count(U32)
    if number not in TENSOR_TYPES:
        raise cursor.error(f"the tensor {name!r} is of the unknown type {number}")
    tensor = Tensor(name, shape, TENSOR_TYPES[number], cursor.count())
    if (shape[0] if shape else 1) % tensor.type.block_elements:
        raise cursor.error(f"rows of {name!r} are no whole blocks of {tensor.type.name}")
    if tensor.elements > TENSOR_BYTES_LIMIT or tensor.size_bytes > TENSOR_BYTES_LIMIT:
        raise cursor.error(f"the tensor {name!r} of shape {shape} is larger than any file")
    return tensor


def _check_data_end(cursor: Cursor, header: GgufHeader, file_bytes: int | None) -> None:
    if file_bytes is None or not header.tensors:
        return
    last = header.tensors[-1]
    end = header.data_offset + last.offset + last.size_bytes
    if end > file_bytes:
        raise cursor.error(f"the file is cut short: it has {file_bytes} bytes, but its tensor data ends at {end}")


def _padded(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment
