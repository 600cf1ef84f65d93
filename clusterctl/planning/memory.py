"""How much memory a model takes on every device and on the head: weights, KV cache, compute buffer.

Slots are what `--tensor-split` counts: 0 to `n_layer - 1` are the layers, slot `n_layer` is the output layer.
Weights and KV cache are exact to the byte; compute buffers are an estimate (see compute.py).
"""

from __future__ import annotations

from itertools import accumulate

from clusterctl.llama.model_header import ModelHeader
from clusterctl.model import Memory, Workload
from clusterctl.planning.compute import ComputeModel
from clusterctl.planning.kv_cache import CacheShape, layer_cache_bytes


class MemoryModel:
    """Answers what any range of slots costs; made once per model and workload, then cheap to ask.

    Raises `UsageError` for a KV cache type that llama.cpp does not know or can't use with this model.
    """

    def __init__(self, header: ModelHeader, workload: Workload) -> None:
        self.header = header
        self.workload = workload
        self.shape = CacheShape.of(header, workload)
        self._compute = ComputeModel(header, workload, self.shape)
        self._weights = list(accumulate((layer.weight_bytes for layer in header.layers), initial=0))
        caches = (layer_cache_bytes(layer, self.shape, workload) for layer in header.layers)
        self._caches = list(accumulate(caches, initial=0))

    @property
    def notes(self) -> tuple[str, ...]:
        """What about this model is not known for certain, in words."""
        return self.header.notes

    @property
    def output_buffer_bytes(self) -> int:
        """The part of the host's compute memory that llama.cpp's own memory table leaves out."""
        return self._compute.output_buffer_bytes

    def device_memory(self, first: int, end: int, *, pipelined: bool) -> Memory:
        """The memory of a device that holds the slots `first` to `end - 1`.

        `pipelined`: the model lies on several devices and no layer on the CPU, see `is_pipelined`.
        """
        if first >= end:
            return Memory()
        stop = min(end, self.header.n_layer)
        model = self._weights[stop] - self._weights[min(first, stop)]
        if model:
            model += self.header.shared_bytes
        if end > self.header.n_layer:
            model += self.header.output_bytes
        return Memory(
            model_bytes=model,
            kv_bytes=self._caches[stop] - self._caches[min(first, stop)],
            compute_bytes=self._compute.device_bytes(first, end, pipelined=pipelined),
        )

    def host_memory(self, *, pipelined: bool) -> Memory:
        """The head's own memory: the input embedding and the workload's `cpu_layers`.

        `cpu_layers` of `n_layer + 1` means the output layer too.
        `model_bytes` is what is really used. llama.cpp may repack weights for its CPU kernels: they then
        stand, at the same size, in a buffer CPU_REPACK that its memory table does not show. `compute_bytes`
        includes the output buffer, which the table does not show either.
        """
        layers = min(self.workload.cpu_layers, self.header.n_layer)
        model = self.header.input_bytes + self._weights[layers] + (self.header.shared_bytes if layers else 0)
        if self.workload.cpu_layers > self.header.n_layer:
            model += self.header.output_bytes - self.header.tied_bytes
        return Memory(
            model_bytes=model,
            kv_bytes=self._caches[layers],
            compute_bytes=self._compute.host_bytes(layers, pipelined=pipelined),
        )


def is_pipelined(devices: int, cpu_layers: int) -> bool:
    """Whether llama.cpp overlaps micro-batches over the devices, which multiplies all inputs.

    Source: llama.cpp src/llama-context.cpp: more than one device, and every layer offloaded. Builds whose RPC
    backend has no events (b10434 is one) do not overlap; for them this errs on the safe side.
    """
    return devices > 1 and cpu_layers == 0


def whole_model_memory(header: ModelHeader, workload: Workload) -> Memory:
    """The memory of one device that holds the whole model, as a draft model's does."""
    return MemoryModel(header, workload).device_memory(0, header.n_layer + 1, pipelined=False)
