"""What a model's files say about it: sizes, shapes and layers, from the headers of all its parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clusterctl.llama.architectures import FULL_LAST_LAYER, MEASURED
from clusterctl.llama.gguf import GgufHeader, Tensor
from clusterctl.llama.layer import FIRST_LAYER_TENSORS, Layer, read_layers
from clusterctl.llama.metadata import Metadata
from clusterctl.llama.model_parts import merge_tensors
from clusterctl.llama.sliding_window import windowed_layers

# llama.cpp src/llama-arch.cpp (LLM_TENSOR_INFOS): the input layer, which stays on the head's CPU.
INPUT_TENSORS = frozenset(
    {"token_embd", "token_embd_norm", "token_types", "position_embd", "per_layer_token_embd"}
)
# Copied to every device that holds a layer.
SHARED_TENSORS = frozenset({"rope_freqs", "rope_factors_long", "rope_factors_short"})


@dataclass(frozen=True, slots=True)
class ModelHeader:
    """A model as its header describes it; sizes are bytes of tensor data.

    `input_bytes` stay on the head's CPU, `shared_bytes` are copied to every device with a layer, and
    `output_bytes` go to the device with the output layer. A model without an output matrix of its own has its
    token embedding there once more: these are `tied_bytes`. `window` is the sliding window in tokens, `None`
    where no layer has one. `n_deepstack` further inputs of the residual stream's width go to the first layers of
    some vision models, `per_layer_input_width` values per token to the layers of some Gemma models.
    `notes` say in words what about this model is not known for certain.
    """

    file: str
    architecture: str
    name: str | None
    layers: tuple[Layer, ...]
    n_embd: int
    n_vocab: int
    context_train: int | None
    n_expert: int
    n_expert_used: int
    window: int | None
    has_full_last_layer: bool
    n_deepstack: int
    per_layer_input_width: int
    input_bytes: int
    shared_bytes: int
    output_bytes: int
    tied_bytes: int
    total_bytes: int
    n_parameters: int
    notes: tuple[str, ...]

    @property
    def n_layer(self) -> int:
        """Number of layers that take a slot of `--tensor-split`; the output layer comes on top."""
        return len(self.layers)

    @property
    def active_bytes_per_token(self) -> int:
        """Bytes of weights read to decode one token: of the routed experts only those in use."""
        return sum(layer.active_bytes for layer in self.layers) + self.shared_bytes + self.output_bytes

    @classmethod
    def from_parts(cls, parts: Sequence[GgufHeader]) -> ModelHeader:
        """The model whose files have these headers, in the order of `part_names`; raises `ModelFileError`."""
        tensors = merge_tensors(parts)
        metadata = Metadata(parts[0])
        windowed = windowed_layers(metadata)
        sizes = {
            name: tensor.size_bytes
            for name, tensor in tensors.items()
            if not name.startswith("blk.") and name not in FIRST_LAYER_TENSORS
        }
        shared = _sum_of(sizes, SHARED_TENSORS)
        inputs = _sum_of(sizes, INPUT_TENSORS)
        tied = 0 if "output.weight" in tensors else sizes.get("token_embd.weight", 0)
        architecture = metadata.architecture
        return cls(
            file=metadata.file,
            architecture=architecture,
            name=metadata.text("general.name"),
            layers=read_layers(metadata, tensors, windowed),
            n_embd=metadata.required("embedding_length"),
            n_vocab=_vocabulary(metadata, tensors),
            context_train=metadata.integer("context_length"),
            n_expert=metadata.integer("expert_count") or 0,
            n_expert_used=metadata.integer("expert_used_count") or 0,
            window=windowed.tokens,
            has_full_last_layer=architecture in FULL_LAST_LAYER or architecture not in MEASURED,
            n_deepstack=metadata.integer("n_deepstack_layers") or 0,
            per_layer_input_width=_outputs(tensors, "per_layer_model_proj.weight"),
            input_bytes=inputs,
            shared_bytes=shared,
            output_bytes=sum(sizes.values()) - shared - inputs + tied,
            tied_bytes=tied,
            total_bytes=sum(tensor.size_bytes for tensor in tensors.values()),
            n_parameters=sum(tensor.elements for tensor in tensors.values()),
            notes=tuple(_notes(architecture, windowed.is_unknown)),
        )


def _sum_of(sizes: Mapping[str, int], owners: frozenset[str]) -> int:
    return sum(size for name, size in sizes.items() if name.partition(".")[0] in owners)


def _vocabulary(metadata: Metadata, tensors: Mapping[str, Tensor]) -> int:
    in_metadata = metadata.integer("vocab_size") or metadata.array_length("tokenizer.ggml.tokens") or 0
    return _outputs(tensors, "token_embd.weight") or in_metadata


def _outputs(tensors: Mapping[str, Tensor], name: str) -> int:
    return tensors[name].outputs if name in tensors else 0


def _notes(architecture: str, is_window_unknown: bool) -> list[str]:
    notes = []
    if architecture not in MEASURED:
        notes.append(f"buffers of the architecture {architecture} were not measured: the general rule is used")
    if is_window_unknown:
        notes.append(f"which layers of {architecture} use its sliding window is unknown: all count as full")
    return notes
