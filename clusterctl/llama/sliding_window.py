"""Which layers of a model attend to a window of the context only."""

from __future__ import annotations

from dataclasses import dataclass

from clusterctl.llama.architectures import IGNORED_WINDOWS, SLIDING_WINDOWS
from clusterctl.llama.metadata import Metadata

PATTERN = "attention.sliding_window_pattern"


@dataclass(frozen=True, slots=True)
class WindowedLayers:
    """The window in tokens (`None`: no layer has one) and, for each layer, whether it is confined to it.

    `is_unknown` says that the file names a window but not which layers have it: all count as full.
    """

    tokens: int | None
    layers: tuple[bool, ...]
    is_unknown: bool = False


def windowed_layers(metadata: Metadata) -> WindowedLayers:
    """Apply llama.cpp's rule (`llama_hparams::set_swa_pattern`) for the model's architecture."""
    none = (False,) * metadata.n_layer
    in_file = metadata.integer("attention.sliding_window")
    rule = SLIDING_WINDOWS.get(metadata.architecture)
    if rule is None:
        is_unknown = bool(in_file) and metadata.architecture not in IGNORED_WINDOWS
        return WindowedLayers(None, none, is_unknown)
    if rule.only_with_layers not in (None, metadata.n_layer):
        return WindowedLayers(None, none)
    tokens = rule.tokens if rule.tokens and in_file != 0 else in_file
    if not tokens:
        return WindowedLayers(None, none)
    if metadata.has_array(PATTERN):
        return WindowedLayers(tokens, tuple(bool(flag) for flag in metadata.per_layer(PATTERN)))
    period = metadata.integer(PATTERN) or rule.period
    if period is None:
        return WindowedLayers(None, none, is_unknown=True)
    full_at = 0 if rule.full_first else period - 1
    return WindowedLayers(tokens, tuple(layer % period != full_at for layer in range(metadata.n_layer)))
