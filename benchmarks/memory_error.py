"""How far the memory model is from llama.cpp's own accounting, and how fast model headers are read.

Run from the root of the repository: python -m benchmarks.memory_error
"""

from __future__ import annotations

import struct
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from statistics import median

from clusterctl.llama.gguf import GgufHeader, read_header
from clusterctl.llama.model_header import ModelHeader
from clusterctl.model import Memory
from clusterctl.planning.memory import MemoryModel
from tests.unit.memory_truth import HOST, Row, estimate_memory, header_bytes, rows

# An underestimate up to this many residual streams is within what ggml's allocator leaves open.
ALLOWED_STREAMS = 2.2
PARTS = 120
TENSORS_PER_PART = 12
TOKENS = 256_000


def main() -> None:
    pairs = list(predict())
    print_exact("weights", [(got.model_bytes, measured.model_bytes) for _, _, got, measured in pairs])
    print_exact("KV cache", [(got.kv_bytes, measured.kv_bytes) for _, _, got, measured in pairs])
    print()
    print_compute(pairs)
    print()
    print_header_reading()


def predict() -> Iterator[tuple[Row, str, Memory, Memory]]:
    for row in rows():
        if row.has_moving_option:
            continue
        devices, host = estimate_memory(row.header, row.workload, row.slots)
        logits = MemoryModel(row.header, row.workload).output_buffer_bytes
        host = replace(host, compute_bytes=host.compute_bytes - logits)
        for name, got in (*zip(row.devices, devices, strict=True), (HOST, host)):
            yield row, name, got, row.measured[name]


def print_exact(title: str, values: list[tuple[int, int]]) -> None:
    exact = sum(got == measured for got, measured in values)
    print(f"{title}: {exact} of {len(values)} values exact to the byte")


def print_compute(pairs: Iterable[tuple[Row, str, Memory, Memory]]) -> None:
    """One line per kind of model and case; `under` is the worst underestimate, in residual streams."""
    groups: dict[tuple[str, str, str], list[tuple[float, float]]] = defaultdict(list)
    for row, name, got, measured in pairs:
        if measured.compute_bytes:
            error = got.compute_bytes - measured.compute_bytes
            where = "host" if name == HOST else "device"
            sizes = (abs(error) / measured.total_bytes, -error / row.stream_bytes)
            groups[row.kind, row.case, where].append(sizes)
            groups["all", row.case, where].append(sizes)
    print("compute, error in % of the device's total           |    n | exact | median |   95% |   max | under")
    for (kind, case, where), errors in sorted(groups.items()):
        relative = sorted(100 * error for error, _ in errors)
        p95 = relative[int(0.95 * (len(relative) - 1))]
        under = max(streams for _, streams in errors)
        exact = sum(abs(streams) < 0.02 for _, streams in errors) / len(errors)
        figures = f"{exact:5.0%} | {median(relative):6.2f} | {p95:5.2f} | {relative[-1]:5.2f} | {under:5.2f}"
        mark = "  too low" if under > ALLOWED_STREAMS else ""
        print(f"{kind:10} {case:20} {where:18} | {len(errors):4} | {figures}{mark}")


def print_header_reading() -> None:
    parts = [synthetic_part(number) for number in range(PARTS)]
    start = time.perf_counter()
    read = [read_counting(f"part {number}", data) for number, data in enumerate(parts)]
    model = ModelHeader.from_parts([header for header, _, _ in read])
    seconds = time.perf_counter() - start
    print_reading(f"{PARTS} parts, {model.n_layer} layers", seconds, read)
    for title, data in (
        (f"vocabulary of {TOKENS} tokens and merges", synthetic_part(0, TOKENS)),
        ("gemma3-270m (262144 tokens)", header_bytes("gemma3-270m-Q4_K_M")),
    ):
        start = time.perf_counter()
        read = [read_counting(title, data)]
        print_reading(title, time.perf_counter() - start, read)


def print_reading(title: str, seconds: float, read: list[tuple[GgufHeader, int, int]]) -> None:
    reads, asked = sum(count for _, count, _ in read), sum(size for _, _, size in read)
    header = sum(found.data_offset for found, _, _ in read)
    sizes = f"{asked / 1e6:.1f} MB for {header / 1e6:.1f} MB"
    print(f"header of {title}: {1000 * seconds:.0f} ms, {reads} reads, {sizes}")


def read_counting(name: str, data: bytes) -> tuple[GgufHeader, int, int]:
    """The header, the number of reads it took, and the bytes they asked for."""
    reader = read_header(name)
    wanted, reads, size = next(reader), 0, 0
    while True:
        reads, size = reads + 1, size + wanted.length
        try:
            wanted = reader.send(data[wanted.offset : wanted.offset + wanted.length])
        except StopIteration as done:
            return done.value, reads, size


def synthetic_part(number: int, tokens: int = 0) -> bytes:
    """A part of a model with one layer in each; the data is there, but empty."""
    values = [key("split.count", 4, PARTS), key("split.no", 4, number)]
    if number == 0:
        values.append(text("general.architecture") + struct.pack("<I", 8) + text("llama"))
        values += [
            key(f"llama.{name}", 4, size) for name, size in (("block_count", PARTS), ("embedding_length", 32))
        ]
    for name in ("tokens", "merges") if tokens else ():
        words = b"".join(text(f"word {word}") for word in range(tokens))
        values.append(text(f"tokenizer.ggml.{name}") + struct.pack("<IIQ", 9, 8, tokens) + words)
    tensors = [
        text(f"blk.{number}.tensor_{index}.weight") + struct.pack("<I2QIQ", 2, 32, 32, 0, 4096 * index)
        for index in range(TENSORS_PER_PART)
    ]
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(values)) + b"".join(values) + b"".join(tensors)
    return head + bytes(4096 * (TENSORS_PER_PART + 1))


def key(name: str, kind: int, value: int) -> bytes:
    return text(name) + struct.pack("<II", kind, value)


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


if __name__ == "__main__":
    main()
