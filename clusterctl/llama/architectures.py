"""What llama.cpp knows of an architecture and does not write into the model file, as data.

Only what costs memory is here: which layers use a sliding window, which keep a KV cache of their own, and
which architectures the memory model was measured on. Source: llama.cpp src/models/*.cpp.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SlidingWindow:
    """Every `period`-th layer attends to the whole context, all others to a window of `tokens`.

    `period` is what holds when the file names no pattern, `None` where only the file can say. The full layer
    is the last of each period, or the first with `full_first`. `tokens` overrides the file's window.
    `only_with_layers`: models of the architecture with another number of layers have no window.
    """

    period: int | None
    full_first: bool = False
    tokens: int | None = None
    only_with_layers: int | None = None


# Architectures not listed ignore `attention.sliding_window` (phi3, for one) or are not known here.
SLIDING_WINDOWS: dict[str, SlidingWindow] = {
    "afmoe": SlidingWindow(4),
    "cohere2": SlidingWindow(4),
    "cohere2moe": SlidingWindow(4, full_first=True),
    "exaone-moe": SlidingWindow(4),
    "exaone4": SlidingWindow(4, only_with_layers=64),
    "gemma2": SlidingWindow(2),
    "gemma3": SlidingWindow(6),
    "gemma3n": SlidingWindow(5),
    "gemma4": SlidingWindow(None),
    "gpt-oss": SlidingWindow(2),
    "llama4": SlidingWindow(4, tokens=8192),
    "mimo2": SlidingWindow(None),
    "olmo2": SlidingWindow(4),
    "smallthinker": SlidingWindow(4, full_first=True, tokens=4096),
    "step35": SlidingWindow(None),
}

# `attention.sliding_window` stands in files of these architectures, but llama.cpp does not use it.
IGNORED_WINDOWS = frozenset({"llama", "mistral3", "phi3", "qwen2", "qwen2moe", "qwen3", "qwen3moe"})

# The first layers only have a KV cache; the others share it. Where it is in the file, the key says so.
LAYERS_WITH_OWN_KV: dict[str, int] = {"gemma3n": 20}

# In the last layer llama.cpp keeps only the rows whose logits are asked for before it comes to the
# feed-forward part; these architectures do so afterwards.
FULL_LAST_LAYER = frozenset({"gpt-oss"})

# Architectures whose memory tables were compared with this model, row by row.
MEASURED = frozenset(
    {
        "command-r",
        "deepseek2",
        "gemma3",
        "glm4moe",
        "gpt-oss",
        "granitehybrid",
        "llama",
        "llama4",
        "mamba2",
        "phi3",
        "qwen2",
        "qwen3",
        "qwen35",
        "qwen3moe",
        "qwen3next",
    }
)
