"""Loads the table of measured allocations: headers, workloads, and what llama.cpp took for them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from clusterctl.llama.model_header import ModelHeader
from clusterctl.model import Memory, Workload
from clusterctl.planning.memory import MemoryModel, is_pipelined
from tests.unit.gguf_files import parse_header

DATA = Path(__file__).parents[1] / "data" / "memory-truth"
HOST = "Host"
# These options move the cache or the experts to the host; a workload can't say so.
MOVING_OPTIONS = frozenset({"nkvo", "cmoe", "ncmoe"})
# What `--parallel` left to llama-server means.
AUTOMATIC_SLOTS = 4


@dataclass(frozen=True)
class Row:
    """One measured run. `measured` has the host's repacked weights where they belong: in its weights."""

    name: str
    header: ModelHeader
    workload: Workload
    devices: tuple[str, ...]
    slots: tuple[int, ...]
    measured: Mapping[str, Memory]
    is_pipelined: bool
    options: frozenset[str]

    @property
    def has_moving_option(self) -> bool:
        return bool(self.options & MOVING_OPTIONS)

    @property
    def stream_bytes(self) -> int:
        """One residual stream of a micro-batch, the unit in which compute buffers differ."""
        return 4 * self.header.n_embd * min(self.workload.batch_physical, self.workload.context)

    @property
    def kind(self) -> str:
        layers = self.header.layers
        if any(layer.latent_width for layer in layers):
            return "MLA"
        if any(layer.state_width for layer in layers):
            return "hybrid" if any(layer.k_width for layer in layers) else "recurrent"
        return "MoE" if self.header.n_expert else "dense"

    @property
    def case(self) -> str:
        if not self.workload.flash_attention:
            return "flash attention off"
        if self.workload.cpu_layers:
            return "layers on the CPU"
        return "several devices" if self.is_pipelined else "one device"


def model_names() -> list[str]:
    return sorted(path.name.removesuffix(".gguf.hdr.gz") for path in (DATA / "headers").iterdir())


@cache
def header_bytes(model: str) -> bytes:
    return gzip.decompress((DATA / "headers" / f"{model}.gguf.hdr.gz").read_bytes())


@cache
def model_header(model: str) -> ModelHeader:
    return ModelHeader.from_parts([parse_header(f"{model}.gguf", header_bytes(model))])


@cache
def model_facts() -> dict[str, dict[str, Any]]:
    facts: dict[str, dict[str, Any]] = json.loads(gzip.decompress((DATA / "models.json.gz").read_bytes()))
    return facts


@dataclass(frozen=True)
class SmallModel:
    """A little model of another architecture, and the MiB of each buffer that was allocated for it on a CPU."""

    header: ModelHeader
    workload: Workload
    model_mib: tuple[float, ...]
    cache_mib: tuple[float, ...]


def small_models() -> Iterator[SmallModel]:
    for name, sizes in json.loads((DATA / "small-models.json").read_text()).items():
        data = gzip.decompress((DATA / "small-headers" / f"{name}.gguf.hdr.gz").read_bytes())
        header = ModelHeader.from_parts([parse_header(f"{name}.gguf", data)])
        workload = Workload(
            context=4096,
            slots=2,
            kv_unified=True,
            batch_logical=128,
            batch_physical=128,
            cpu_layers=header.n_layer + 1,
        )
        yield SmallModel(header, workload, tuple(sizes["model_mib"]), tuple(sizes["cache_mib"]))


def rows() -> Iterator[Row]:
    for line in gzip.decompress((DATA / "rows.jsonl.gz").read_bytes()).splitlines():
        yield _row(json.loads(line))


def _row(raw: dict[str, Any]) -> Row:
    config, layers = raw["config"], raw["layers_per_device"]
    header = model_header(raw["model"])
    is_automatic = config["np"] < 0
    workload = Workload(
        context=config["ctx"],
        slots=AUTOMATIC_SLOTS if is_automatic else config["np"],
        kv_unified=is_automatic or config["kv_unified"],
        kv_type_k=config["ctk"],
        kv_type_v=config["ctv"],
        flash_attention=config["fa"] != "off",
        batch_logical=config["b"],
        batch_physical=config["ub"],
        cpu_layers=max(header.n_layer + 1 - config["ngl"], 0),
        swa_full=bool(config["extra"].get("swa_full")),
    )
    repacked = (raw["not_in_table_bytes"] or {}).get("server", {}).get("CPU_REPACK", [0])[0]
    measured = {
        device: Memory(model + (repacked if device == HOST else 0), context, compute)
        for device, (model, context, compute) in raw["bytes"].items()
    }
    return Row(
        name=f"{raw['model']} {config['name']}",
        header=header,
        workload=workload,
        devices=tuple(config["devices"]),
        slots=tuple(layers.get(device, 0) + (device == raw["output_device"]) for device in config["devices"]),
        measured=measured,
        is_pipelined=raw["pipeline_parallel"],
        options=frozenset(config["extra"]),
    )


def estimate_memory(
    header: ModelHeader, workload: Workload, slots: Sequence[int]
) -> tuple[tuple[Memory, ...], Memory]:
    """The memory of every device, in device order, and of the host.

    `slots` are the `--tensor-split` counts; with the workload's `cpu_layers` they must add up to
    `n_layer + 1`, else `ValueError`.
    """
    if sum(slots) + workload.cpu_layers != header.n_layer + 1:
        raise ValueError(
            f"{slots} and {workload.cpu_layers} on the CPU are not {header.n_layer} layers and the output"
        )
    model = MemoryModel(header, workload)
    pipelined = is_pipelined(len(slots), workload.cpu_layers)
    ends = list(accumulate(slots, initial=workload.cpu_layers))
    devices = tuple(model.device_memory(first, end, pipelined=pipelined) for first, end in pairwise(ends))
    return devices, model.host_memory(pipelined=pipelined)
