"""The compute buffer of a device: what the graph of one micro-batch needs beside weights and cache.

ggml keeps all tensors of the graph in one buffer per device and reuses what is no longer needed, so the
buffer is the inputs, the residual stream, and the widest step of the widest layer. Pipelining over several
devices keeps four copies of every input (llama.cpp `GGML_SCHED_MAX_COPIES`). What these rules leave open is
where ggml's best-fit allocator puts things, in steps of one residual stream.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate

from clusterctl.llama.layer import Layer
from clusterctl.llama.model_header import ModelHeader
from clusterctl.model import Workload
from clusterctl.planning.kv_cache import STATE_VALUE_BYTES, CacheShape

PIPELINE_COPIES = 4
VALUE_BYTES = 4
INDEX_BYTES = 8
POSITION_BYTES = 4


class ComputeModel:
    """Estimates the compute buffers of one model under one workload, in bytes."""

    def __init__(self, header: ModelHeader, workload: Workload, shape: CacheShape) -> None:
        self.header = header
        self.shape = shape
        self.is_flash = workload.flash_attention
        # One for each sequence and drafted token (llama.cpp common_speculative_get_output_limits).
        self.outputs = min(workload.batch_logical, shape.sequences * (1 + workload.draft_tokens))
        self.is_latent = any(layer.latent_width for layer in header.layers)
        self.has_attention = any(layer.k_width for layer in header.layers)
        self.value_index_width = max((layer.v_width for layer in header.layers), default=0)
        self.stream_bytes = VALUE_BYTES * shape.micro_batch * header.n_embd
        self.per_layer_input_bytes = VALUE_BYTES * shape.micro_batch * header.per_layer_input_width
        self._with_full = _running(bool(layer.k_width) and not layer.is_sliding for layer in header.layers)
        self._with_window = _running(bool(layer.k_width) and layer.is_sliding for layer in header.layers)
        loaded = [index for index, layer in enumerate(header.layers) if layer.weight_bytes]
        reduced = loaded[-1] if loaded and not header.has_full_last_layer else None
        self._steps = {
            pipelined: [
                self._widest_step(layer, pipelined, index == reduced) for index, layer in enumerate(header.layers)
            ]
            for pipelined in (False, True)
        }
        self._end_of_loaded = loaded[-1] + 1 if loaded else 0

    def device_bytes(self, first: int, end: int, *, pipelined: bool) -> int:
        """The buffer of a device with the slots `first` to `end - 1`; the output layer is slot `n_layer`."""
        has_output = end > self.header.n_layer
        stop = min(end, self._end_of_loaded)
        copies = PIPELINE_COPIES if pipelined else 1
        logits = self._logits_bytes(copies) if has_output else 0
        if first >= stop:
            return logits
        is_first = first == 0
        streams = self._input_streams(is_first, has_output, pipelined) * copies
        streams += self._residual_streams(is_first, pipelined)
        needed = streams * self.stream_bytes + max(self._steps[pipelined][first:stop])
        # The per-layer inputs are projected on the first device, which takes up to three more of them.
        needed += (copies + (3 if is_first else 0)) * self.per_layer_input_bytes
        return self._inputs(first, stop, copies) + max(needed, logits)

    def host_bytes(self, cpu_layers: int, *, pipelined: bool) -> int:
        """The buffer on the head's own CPU, which holds the embedding and the first `cpu_layers` layers.

        The last term is the output buffer for the logits, which llama.cpp's memory table leaves out.
        """
        copies = PIPELINE_COPIES if pipelined else 1
        streams = (2 * copies + 2 + (copies + 1) * self.header.n_deepstack) * self.stream_bytes
        if cpu_layers:
            on_cpu = (5 + self.header.n_deepstack) * self.stream_bytes + max(self._steps[False][:cpu_layers])
            streams = max(streams, on_cpu + 3 * self.per_layer_input_bytes)
        inputs = self._inputs(0, self.header.n_layer, copies) + (copies + 1) * self.per_layer_input_bytes
        return inputs + streams + self.output_buffer_bytes

    @property
    def output_buffer_bytes(self) -> int:
        """Logits of every output on the host (llama.cpp src/llama-context.cpp, `output_reserve`)."""
        return VALUE_BYTES * self.header.n_vocab * self.outputs

    def _logits_bytes(self, copies: int) -> int:
        return VALUE_BYTES * self.outputs * ((copies + 1) * self.header.n_embd + self.header.n_vocab)

    def _input_streams(self, is_first: bool, has_output: bool, pipelined: bool) -> int:
        """How many inputs as wide as the residual stream are handed to the device."""
        if pipelined and not self.has_attention:
            # The state's own operations make a purely recurrent graph cross every boundary more than once.
            return 5 if is_first or has_output else 7
        return 3 + self.header.n_deepstack if is_first else 1

    def _residual_streams(self, is_first: bool, pipelined: bool) -> int:
        """How many copies of the residual stream are alive during the widest step.

        Where the allocator's gaps vary, this is the most that was measured: with latent attention on the first
        device, with experts behind layers on the CPU, and without flash attention.
        """
        gaps = 0 if self.is_flash else 1
        if not pipelined:
            return 1 + gaps + (4 if self.header.n_expert and not is_first else 0)
        if not self.has_attention:
            return gaps + (3 if is_first else 4)
        return gaps + (3 + (2 if self.is_latent else 0) if is_first else 2)

    def _inputs(self, first: int, end: int, copies: int) -> int:
        """Masks, positions and cache indices."""
        mask_bytes = 2 if self.is_flash else 4
        value_rows = 1 if self.is_flash else self.value_index_width
        per_token = POSITION_BYTES
        for counts, cells in (
            (self._with_full, self.shape.cells),
            (self._with_window, self.shape.sliding_cells),
        ):
            if counts[end] > counts[first]:
                indices = 1 + (value_rows if self.value_index_width else 0)
                per_token += INDEX_BYTES * indices + mask_bytes * cells
        return copies * self.shape.micro_batch * per_token

    def _widest_step(self, layer: Layer, pipelined: bool, is_reduced: bool) -> int:
        """Bytes of the layer's widest step beside its inputs and the residual stream.

        `is_reduced`: only a few rows reach the layer's feed-forward part.
        """
        token_bytes = VALUE_BYTES * self.shape.micro_batch
        feed_forward = 0 if is_reduced else self._feed_forward(layer, pipelined)
        state = 2 * STATE_VALUE_BYTES * layer.state_width * self.shape.sequences if layer.recurrent_width else 0
        return max(
            token_bytes * feed_forward,
            token_bytes * self._attention(layer),
            token_bytes * layer.recurrent_width + state,
        )

    def _feed_forward(self, layer: Layer, pipelined: bool) -> int:
        width = layer.feed_forward_width
        experts = layer.expert_output_width
        # The experts' results fit into the space of gate and up, unless they are wider.
        if 3 * experts >= 2 * width:
            width += experts
            experts = 0
        if not pipelined:
            return width
        # Latent attention leaves gaps that the experts' results do not fit in.
        return width + (experts + self.header.n_embd if self.is_latent else layer.query_width)

    def _attention(self, layer: Layer) -> int:
        if not layer.k_width:
            return 0
        if layer.latent_width:
            width = 2 * layer.latent_width + self.header.n_embd + layer.query_width
        else:
            width = 2 * layer.query_width + layer.gate_width
        if self.is_flash:
            return width
        cells = self.shape.sliding_cells if layer.is_sliding else self.shape.cells
        return (
            width
            + layer.n_head * cells
            + (layer.query_width + layer.expert_output_width if layer.latent_width else 0)
        )


def _running(flags: Iterable[bool]) -> list[int]:
    return list(accumulate(flags, initial=0))
