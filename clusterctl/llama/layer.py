"""One layer of a model: its weights, what it caches, and how wide its activations are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from clusterctl.llama.architectures import LAYERS_WITH_OWN_KV
from clusterctl.llama.gguf import Tensor
from clusterctl.llama.metadata import Metadata
from clusterctl.llama.sliding_window import WindowedLayers

# llama.cpp loads these with the first layer (gemma3n, gemma4).
FIRST_LAYER_TENSORS = frozenset({"per_layer_model_proj.weight", "per_layer_proj_norm.weight"})
RECURRENT_PREFIXES = ("ssm_", "time_mix_", "shortconv")
# A recurrent layer may have a fused `attn_qkv` too; these only stand in layers with a KV cache.
KEY_TENSORS = ("attn_k.weight", "attn_kv_a_mqa.weight", "attn_k_b.weight")


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer as its tensors and the model's sizes describe it. Widths are values per token or KV cell.

    `weight_bytes` is what llama.cpp loads: 0 for a layer of multi-token prediction, which keeps its slot.
    `active_bytes` is what one decoded token reads of it. `elements` and `active_elements` are the same in values,
    `None` in a description that was written before they were counted.
    `k_width` and `v_width`: one cell of the KV cache; 0 where the layer keeps none.
    `state_width`: the recurrent state of one sequence, in f32 values.
    `query_width`, `gate_width`: results of the query projection and of the gate some models put on attention.
    `latent_width`: all heads' queries in the latent space of multi-head latent attention, else 0.
    `feed_forward_width`: gate, up and their product, over all experts one token uses.
    `expert_output_width`: the results of those experts before they are summed, 0 in a dense layer.
    `recurrent_width`: the projections, convolutions and results of a Mamba or RWKV block, 0 elsewhere.
    """

    weight_bytes: int
    active_bytes: int
    is_sliding: bool
    k_width: int
    v_width: int
    state_width: int
    n_head: int
    query_width: int
    gate_width: int
    latent_width: int
    feed_forward_width: int
    expert_output_width: int
    recurrent_width: int
    elements: int | None = None
    active_elements: int | None = None


Tensors = Mapping[str, Tensor]


def read_layers(metadata: Metadata, tensors: Tensors, windowed: WindowedLayers) -> tuple[Layer, ...]:
    """All layers in order; `tensors` are those of the whole model."""
    by_layer: list[dict[str, Tensor]] = [{} for _ in range(metadata.n_layer)]
    for name, tensor in tensors.items():
        prefix, _, rest = name.partition(".")
        number, _, own_name = rest.partition(".")
        if name in FIRST_LAYER_TENSORS:
            by_layer[0][name] = tensor
        elif prefix == "blk":
            if not number.isdecimal() or int(number) >= metadata.n_layer:
                raise metadata.error(f"the tensor {name!r} belongs to none of the {metadata.n_layer} layers")
            by_layer[int(number)][own_name] = tensor
    shapes = _Shapes(metadata, windowed)
    return tuple(shapes.layer(index, own) for index, own in enumerate(by_layer))


class _Shapes:
    """The sizes that the layers of one model have in common."""

    def __init__(self, metadata: Metadata, windowed: WindowedLayers) -> None:
        size = metadata.integer
        self.n_embd = metadata.required("embedding_length")
        self.n_head = metadata.per_layer("attention.head_count")
        kv_key = "attention.head_count_kv"
        self.n_head_kv = metadata.per_layer(kv_key) if metadata.has(kv_key) else self.n_head
        self.is_sliding = windowed.layers
        head = self.n_embd // self.n_head[0] if self.n_head[0] else 0
        self.key = _or(size("attention.key_length"), head)
        self.value = _or(size("attention.value_length"), head)
        self.key_sliding = _or(size("attention.key_length_swa"), self.key)
        self.value_sliding = _or(size("attention.value_length_swa"), self.value)
        self.key_mla = size("attention.key_length_mla")
        self.is_mla = bool(self.key_mla and size("attention.value_length_mla"))
        self.n_expert_used = _or(size("expert_used_count"), 0)
        loaded = metadata.n_layer - _or(size("nextn_predict_layers"), 0)
        own_kv = LAYERS_WITH_OWN_KV.get(metadata.architecture, loaded)
        self.loaded = loaded
        self.with_kv = min(own_kv, loaded - _or(size("attention.shared_kv_layers"), 0))
        self.state_width, self.convolution = _state(metadata, self.n_embd, self.n_head[0])
        self.inner = _or(size("ssm.inner_size"), 0)

    def layer(self, index: int, tensors: Tensors) -> Layer:
        is_loaded = index < self.loaded
        if not is_loaded:
            tensors = {}
        is_recurrent = any(name.startswith(RECURRENT_PREFIXES) for name in tensors)
        has_keys = any(name in tensors for name in KEY_TENSORS)
        has_kv = index < self.with_kv and (has_keys or ("attn_qkv.weight" in tensors and not is_recurrent))
        sliding = self.is_sliding[index]
        n_head, cells = self.n_head[index], self.n_head_kv[index] if has_kv else 0
        k_width = cells * (self.key_sliding if sliding else self.key)
        key = self.key_mla if self.is_mla and self.key_mla else self.key
        weight_bytes, active_bytes = self._amounts(tensors, lambda tensor: tensor.size_bytes)
        elements, active_elements = self._amounts(tensors, lambda tensor: tensor.elements)
        return Layer(
            weight_bytes=weight_bytes,
            active_bytes=active_bytes,
            is_sliding=sliding,
            k_width=k_width,
            v_width=0 if self.is_mla else cells * (self.value_sliding if sliding else self.value),
            state_width=self.state_width if is_recurrent else 0,
            n_head=n_head,
            query_width=n_head * key,
            gate_width=max(0, _outputs(tensors, "attn_q.weight") - n_head * key) if has_kv else 0,
            latent_width=n_head * k_width if self.is_mla else 0,
            feed_forward_width=max(
                _feed_forward(tensors, "", 1),
                _feed_forward(tensors, "_exps", self.n_expert_used),
                _feed_forward(tensors, "_shexp", 1),
            ),
            expert_output_width=self.n_expert_used * self.n_embd if "ffn_down_exps.weight" in tensors else 0,
            recurrent_width=self._recurrent(tensors) if is_recurrent else 0,
            elements=elements,
            active_elements=active_elements,
        )

    def _amounts(self, tensors: Tensors, amount: Callable[[Tensor], int]) -> tuple[int, int]:
        """The amount of all tensors, and the part of it that one token uses: of experts only some."""
        total = idle = 0
        for name, tensor in tensors.items():
            total += amount(tensor)
            if "_exps." in name and tensor.shape and (experts := tensor.shape[-1]):
                idle += amount(tensor) * max(0, experts - self.n_expert_used) // experts
        return total, total - idle

    def _recurrent(self, tensors: Tensors) -> int:
        if "ssm_in.weight" in tensors:
            projected = _outputs(tensors, "ssm_in.weight")
            return max(0, projected + 2 * (self.convolution + self.inner - self.n_embd))
        if any(name.startswith("time_mix_") for name in tensors):
            return sum(_outputs(tensors, name) for name in tensors) + 4 * self.n_embd
        # Delta nets and short convolutions are narrower than the feed-forward part beside them.
        return 0


def _state(metadata: Metadata, n_embd: int, n_head: int) -> tuple[int, int]:
    """Recurrent state of one sequence, and the width of its convolution (llama.cpp src/llama-hparams.cpp)."""
    size = metadata.integer
    if wkv := size("wkv.head_size"):
        return n_embd * (_or(size("token_shift_count"), 2) + wkv), 0
    if cache := size("shortconv.l_cache"):
        return n_embd * (cache - 1), n_embd
    taps = max(0, _or(size("ssm.conv_kernel"), 1) - 1)
    if head := size("kda.head_dim"):
        return taps * 3 * n_head * head + n_head * head * head, 3 * n_head * head
    inner, state = _or(size("ssm.inner_size"), 0), _or(size("ssm.state_size"), 0)
    convolution = inner + 2 * _or(size("ssm.group_count"), 0) * state
    return taps * convolution + state * inner, convolution


def _feed_forward(tensors: Tensors, kind: str, used: int) -> int:
    """Gate, up and product of one feed-forward part: `kind` is the ending of its tensors' names."""
    down = tensors.get(f"ffn_down{kind}.weight")
    if down is None or not down.shape:
        return 0
    projected = sum(_outputs(tensors, f"ffn_{part}{kind}.weight") for part in ("gate", "up", "gate_up"))
    # Without a gate the activation works in place; a fused gate doubles the projection.
    product = down.shape[0] if projected > down.shape[0] else 0
    return used * (projected + product)


def _outputs(tensors: Tensors, name: str) -> int:
    return tensors[name].outputs if name in tensors else 0


def _or(value: int | None, default: int) -> int:
    return default if value is None else value
