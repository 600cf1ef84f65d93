"""GGUF files whose bytes are at hand."""

from __future__ import annotations

from clusterctl.llama.gguf import GgufHeader, read_header


def parse_header(file: str, data: bytes) -> GgufHeader:
    """The header of a file that begins with `data`; raises `ModelFileError`."""
    reader = read_header(file)
    wanted = next(reader)
    while True:
        try:
            wanted = reader.send(data[wanted.offset : wanted.offset + wanted.length])
        except StopIteration as done:
            header: GgufHeader = done.value
            return header
