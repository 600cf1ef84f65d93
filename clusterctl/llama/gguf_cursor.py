"""A position in the first bytes of a GGUF file, the format's primitive values, and sane limits for each."""

from __future__ import annotations

import struct

from clusterctl.errors import ModelFileError

# Real headers stay below 30 MB even with a quarter of a million tokens and their merges.
HEADER_LIMIT_BYTES = 256 * 1024 * 1024
NAME_LIMIT_BYTES = 64 * 1024
TEXT_LIMIT_BYTES = 16 * 1024 * 1024
ARRAY_DEPTH_LIMIT = 8
# Arrays with one number per layer are kept; the scores of a vocabulary are not.
KEPT_ARRAY_LIMIT = 4096

BOOL, STRING, ARRAY = 7, 8, 9
U32, U64 = struct.Struct("<I"), struct.Struct("<Q")
NUMBERS = {
    0: struct.Struct("<B"),
    1: struct.Struct("<b"),
    2: struct.Struct("<H"),
    3: struct.Struct("<h"),
    4: U32,
    5: struct.Struct("<i"),
    6: struct.Struct("<f"),
    BOOL: struct.Struct("<?"),
    10: U64,
    11: struct.Struct("<q"),
    12: struct.Struct("<d"),
}


class OmittedArray:
    """An array whose values were stepped over: strings, nested arrays, or very many numbers."""

    __slots__ = ("length",)

    def __init__(self, length: int) -> None:
        self.length = length


Number = int | float | bool
Value = Number | str | tuple[Number, ...] | OmittedArray


class ShortBuffer(Exception):
    """The value goes on for at least `missing` bytes after the bytes read so far."""

    def __init__(self, missing: int) -> None:
        super().__init__(missing)
        self.missing = missing


class Cursor:
    """Reads values from a growing buffer.

    Every method raises `ShortBuffer` when the buffer ends too early and `ModelFileError` when the value can't
    be right; `limit` is the byte by which the header must have ended.
    """

    def __init__(self, file: str, file_bytes: int | None) -> None:
        self.file = file
        self.file_bytes = file_bytes
        self.limit = HEADER_LIMIT_BYTES if file_bytes is None else min(file_bytes, HEADER_LIMIT_BYTES)
        self.buffer = bytearray()
        self.position = 0

    def error(self, why: str) -> ModelFileError:
        """The error that names the file and the present position."""
        return ModelFileError(
            f"{self.file}: byte {self.position}: {why}",
            hint="check that this is a whole GGUF file; if so, download or copy it again",
        )

    def need(self, length: int) -> None:
        """Make sure that `length` more bytes are in the buffer."""
        end = self.position + length
        if end > self.limit:
            announced = f"{length} more bytes are announced"
            if self.limit == self.file_bytes:
                raise self.error(f"the file is cut short: {announced}, but it ends at byte {self.limit}")
            raise self.error(f"{announced}, but the header must end by {self.limit}")
        if end > len(self.buffer):
            raise ShortBuffer(end - len(self.buffer))

    def number(self, form: struct.Struct) -> Number:
        """The next number of the given form."""
        self.need(form.size)
        value: Number = form.unpack_from(self.buffer, self.position)[0]
        self.position += form.size
        return value

    def count(self, form: struct.Struct = U64) -> int:
        """The next unsigned integer."""
        return int(self.number(form))

    def text(self, limit_bytes: int) -> str:
        """The next string; bytes that are no UTF-8 are replaced."""
        length = self.count()
        if length > limit_bytes:
            raise self.error(f"a text of {length} bytes, where at most {limit_bytes} are sane")
        self.need(length)
        start = self.position
        self.position += length
        return self.buffer[start : self.position].decode("utf-8", errors="replace")

    def value(self, kind: int, depth: int = 0) -> Value:
        """The next metadata value of the given GGUF type number."""
        if kind == STRING:
            return self.text(TEXT_LIMIT_BYTES)
        if kind == ARRAY:
            return self._array(depth)
        if kind not in NUMBERS:
            raise self.error(f"unknown value type {kind}")
        return self.number(NUMBERS[kind])

    def _array(self, depth: int) -> tuple[Number, ...] | OmittedArray:
        if depth >= ARRAY_DEPTH_LIMIT:
            raise self.error(f"arrays nested deeper than {ARRAY_DEPTH_LIMIT}")
        kind, length = self.count(U32), self.count()
        if kind == STRING:
            self._skip_texts(length)
        elif kind == ARRAY:
            for _ in range(length):
                self._array(depth + 1)
        elif kind in NUMBERS:
            size = NUMBERS[kind].size
            self.need(length * size)
            start = self.position
            self.position += length * size
            if length <= KEPT_ARRAY_LIMIT:
                values = NUMBERS[kind].iter_unpack(memoryview(self.buffer)[start : self.position])
                return tuple(value for (value,) in values)
        else:
            raise self.error(f"unknown array type {kind}")
        return OmittedArray(length)

    def _skip_texts(self, length: int) -> None:
        # A vocabulary has hundreds of thousands of strings, so the loop does nothing but add.
        position, buffer, unpack = self.position, self.buffer, U64.unpack_from
        try:
            for _ in range(length):
                position += 8 + unpack(buffer, position)[0]
        except (struct.error, OverflowError):
            position += 8
        self.need(position - self.position)
        self.position = position
