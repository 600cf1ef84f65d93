"""The recipe: what is served, and how. Every key of the file, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from clusterctl.config.addresses import Host
from clusterctl.config.fields import (
    AnyText,
    Count,
    CountOrZero,
    DeviceName,
    Line,
    Path,
    Port,
    PositiveNumber,
    RecipeName,
    ShareName,
    Truth,
    Version,
)
from clusterctl.config.section import KeyFault, Section

CacheType = Literal["f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"]
"""Types of the KV cache that llama-server takes (llama.cpp common/arg.cpp)."""

DraftType = Literal["model", "ngram-simple", "ngram-map-k", "ngram-map-k4v", "ngram-mod", "ngram-cache"]
"""`model` is a smaller model; the others guess from the text so far (`--spec-type` of llama-server)."""

LoadMode = Literal["auto", "none", "mmap", "mlock", "dio"]
Strategy = Literal["memory", "speed", "manual"]


def _on_or_off(given: object) -> object:
    """YAML 1.1 tools write `on` as `true`."""
    return {"true": "on", "false": "off", "True": "on", "False": "off"}.get(str(given), given)


FlashAttention = Annotated[
    Literal["on", "off", "auto"],
    BeforeValidator(_on_or_off),
    WithJsonSchema({"enum": ["on", "off", "auto", True, False]}),
]


class Model(Section):
    """The model to serve."""

    path: Path
    """GGUF file on the head, the first part of a split one."""
    alias: Line | None = None
    """Name that clients use. Left out: llama-server takes the file's."""


class Draft(Section):
    """Speculative decoding: something fast drafts tokens, the model checks them."""

    path: Path | None = None
    """GGUF file of a smaller model of the same family, on the head."""
    type: DraftType = "model"
    """`model` drafts with the model in `path`; an `ngram-…` type needs none, it repeats the text so far."""
    max_tokens: Count | None = None
    """Tokens drafted at once, at most. Left out: llama-server's default."""
    device: DeviceName | None = None
    """The head's device that runs the draft model, such as CUDA0. Left out: llama-server chooses."""

    @model_validator(mode="after")
    def _model_or_ngram(self) -> Self:
        if self.type == "model" and self.path is None:
            raise KeyFault("path", "`path` of a draft model is missing; or draft without one: `type: ngram-mod`")
        if self.type != "model" and self.path is not None:
            raise KeyFault("path", f"`{self.type}` drafts without a model; remove either `path` or `type`")
        if self.type != "model" and self.device is not None:
            raise KeyFault("device", f"`{self.type}` drafts without a device; remove `device`")
        return self


class KvCache(Section):
    """How keys and values of the context are kept."""

    k: CacheType = "f16"
    """Type of the keys; q8_0 halves their memory."""
    v: CacheType = "f16"
    """Type of the values; other than f32, f16 and bf16, it needs flash attention."""
    unified: Truth | None = None
    """One cache that all slots share, instead of an equal part for each. Left out: the build's default."""


class Batch(Section):
    """How many tokens of a prompt are taken at once."""

    logical: Count = 2048
    """Tokens taken from the queue at once (`--batch-size`)."""
    physical: Count = 512
    """Tokens computed at once (`--ubatch-size`): more speeds up prompts and costs memory on every device."""

    @model_validator(mode="after")
    def _physical_fits_in_logical(self) -> Self:
        if self.physical > self.logical:
            message = f"must not exceed `batch.logical`, {self.logical} (got {self.physical})"
            raise KeyFault("physical", message)
        return self


class Split(Section):
    """Which device gets which layers."""

    strategy: Strategy = "memory"
    """`memory`: in proportion to free memory. `speed`: to bandwidth, if it fits. `manual`: see `layers`."""
    layers: Annotated[Mapping[ShareName, Count], Field(min_length=1)] | None = None
    """For `manual`: the number of layers of each node, or of each device written `node/device`."""
    cpu_layers: CountOrZero = 0
    """Keep this many layers, the first ones, on the head's CPU."""

    @model_validator(mode="after")
    def _layers_if_manual(self) -> Self:
        if self.strategy == "manual" and self.layers is None:
            raise KeyFault(
                "layers", "`layers` is missing; `strategy: manual` needs a number for each node or device"
            )
        if self.strategy != "manual" and self.layers is not None:
            raise KeyFault("layers", f"only `strategy: manual` takes `layers`, and this is `{self.strategy}`")
        for share in self.layers or {}:
            node = share.partition("/")[0]
            if share != node and node in (self.layers or {}):
                raise KeyFault("layers", f"`{node}` and `{share}` overlap; give the node a number, or its devices")
        return self


class Tls(Section):
    """A certificate, so that clients reach the head by HTTPS. Needs a llama-server that was built with TLS."""

    key_file: Path
    """File on the head with the private key (PEM)."""
    cert_file: Path
    """File on the head with the certificate, and those that lead to its root (PEM)."""


class Server(Section):
    """Where llama-server listens for clients, on the head."""

    host: Host = "127.0.0.1"
    """Address to listen on. The default serves the head's own machine alone; widen it with an API key."""
    port: Port = 8080
    """TCP port to listen on."""
    api_key_file: Path | None = None
    """File on the head with the keys that clients may send, one a line. Left out: anyone is served."""
    tls: Tls | None = None
    """Serve HTTPS with this certificate. Left out: HTTP."""
    extra_args: tuple[AnyText, ...] = ()
    """Further arguments of llama-server, one a list item. What would undo the plan, and secrets, are refused."""


class Recipe(Section):
    """What is served: the model, its context, and how its layers are spread."""

    version: Version
    """Version of the file format."""
    name: RecipeName
    """Name of the recipe; results of `bench` are kept under it."""
    source: Line | None = None
    """URL of the published experiment that this repeats."""
    model: Model
    """The model to serve."""
    draft: Draft | None = None
    """Speculative decoding, on the head."""
    context: Count
    """Tokens of context, for all slots together."""
    parallel: Count = 1
    """Requests served at the same time (slots)."""
    kv_cache: KvCache = KvCache()
    """How keys and values of the context are kept."""
    flash_attention: FlashAttention = "auto"
    """`on`, `off`, or `auto`: on where all devices can."""
    batch: Batch = Batch()
    """How many tokens of a prompt are taken at once."""
    load_mode: LoadMode = "auto"
    """How the head reads the model: `dio` past the page cache, `mmap` mapped, `mlock` kept in RAM, `none`."""
    split: Split = Split()
    """Which device gets which layers."""
    server: Server = Server()
    """Where clients reach the model."""
    expect: Mapping[RecipeName, PositiveNumber] = Field(default_factory=dict)
    """Published figures that `bench` compares with, such as decode_tok_s and prefill_tok_s."""
