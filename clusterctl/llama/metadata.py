"""Typed access to the key-values of a GGUF header, under the prefix of the model's architecture."""

from __future__ import annotations

from clusterctl.errors import ModelFileError
from clusterctl.llama.gguf import GgufHeader
from clusterctl.llama.gguf_cursor import OmittedArray

LAYERS_LIMIT = 1024
# Sizes beyond this are damage or malice; the largest of real models are below a million.
SIZE_LIMIT = 1 << 31


class Metadata:
    """The sizes a header names. A missing key is `None`; one of the wrong kind is a `ModelFileError`."""

    def __init__(self, header: GgufHeader) -> None:
        self.file = header.file
        self._values = header.metadata
        architecture = self.text("general.architecture")
        if not architecture:
            raise self.error("it names no architecture (general.architecture)")
        self.architecture = architecture
        self.n_layer = self.required("block_count")
        if not 1 <= self.n_layer <= LAYERS_LIMIT:
            raise self.error(f"block_count is {self.n_layer}, sane is 1 to {LAYERS_LIMIT}")

    def error(self, why: str) -> ModelFileError:
        """The error that names the file."""
        return ModelFileError(f"{self.file}: {why}", hint="check that this file holds a language model")

    def text(self, key: str) -> str | None:
        """A text under its full key."""
        value = self._values.get(key)
        if value is not None and not isinstance(value, str):
            raise self.error(f"{key} is {value!r}, not a text")
        return value

    def integer(self, key: str) -> int | None:
        """A size of the architecture."""
        return self.whole(f"{self.architecture}.{key}")

    def required(self, key: str) -> int:
        """A size of the architecture that no model is without."""
        value = self.integer(key)
        if value is None:
            raise self.error(f"the key {self.architecture}.{key} is missing")
        return value

    def whole(self, key: str) -> int | None:
        """A size under its full key."""
        value = self._values.get(key)
        return None if value is None else self._size(key, value)

    def array_length(self, key: str) -> int | None:
        """How many values an array under its full key has."""
        value = self._values.get(key)
        if isinstance(value, OmittedArray):
            return value.length
        return len(value) if isinstance(value, tuple) else None

    def has(self, key: str) -> bool:
        """Whether the architecture's key is in the file."""
        return f"{self.architecture}.{key}" in self._values

    def has_array(self, key: str) -> bool:
        """Whether the architecture's key holds one value per layer."""
        return isinstance(self._values.get(f"{self.architecture}.{key}"), tuple)

    def per_layer(self, key: str, default: int = 0) -> tuple[int, ...]:
        """A size of each layer: the file holds either one for all, or an array."""
        name = f"{self.architecture}.{key}"
        value = self._values.get(name, default)
        if not isinstance(value, tuple):
            return (self._size(name, value),) * self.n_layer
        if len(value) < self.n_layer:
            raise self.error(f"{name} has {len(value)} values for {self.n_layer} layers")
        return tuple(self._size(name, item) for item in value[: self.n_layer])

    def _size(self, name: str, value: object) -> int:
        if not isinstance(value, int) or not 0 <= value <= SIZE_LIMIT:
            raise self.error(f"{name} is {value!r}, not a size")
        return int(value)
