"""What the head's log says while it loads: where the weights went."""

from __future__ import annotations

import re
from collections.abc import Mapping

# llama.cpp src/llama-model.cpp prints one such line for each buffer; a remote one carries its endpoint,
# `RPC0[10.0.0.2:50052]` or, before 2025-10, `RPC[10.0.0.2:50052]`.
_MODEL_BUFFER = re.compile(r"load_tensors: +(\S+) model buffer size = +([0-9]+(?:\.[0-9]+)?) MiB")
_ENDPOINT = re.compile(r"^RPC\d*\[([^\]]+)\]$")


def model_buffers(log: str) -> Mapping[str, float]:
    """Return the MiB of weights by endpoint for workers, and by buffer name for the head's own devices."""
    found: dict[str, float] = {}
    for name, size in _MODEL_BUFFER.findall(log):
        remote = _ENDPOINT.match(name)
        key = remote[1] if remote else name
        found[key] = found.get(key, 0.0) + float(size)
    return found
