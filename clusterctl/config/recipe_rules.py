"""Rules of a recipe that no single section can break: between its sections, and against an inventory."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.config.document import Document, Items, Map, Scalar, fault_at
from clusterctl.config.faults import suggestion
from clusterctl.config.inventory import Inventory
from clusterctl.errors import Fault
from clusterctl.llama.arguments import argument_refusal, option_of

PLAIN_CACHE_TYPES = frozenset({"f32", "f16", "bf16"})


def recipe_faults(document: Document, inventory: Inventory | None) -> Iterator[Fault]:
    """Yield what is wrong between the sections of a recipe and, where one is given, with its inventory."""
    yield from _quantized_values_with_flash_attention(document)
    yield from _arguments_beside_the_plan(document)
    if inventory:
        yield from _layers_on_known_nodes(document, inventory)


def _quantized_values_with_flash_attention(document: Document) -> Iterator[Fault]:
    """llama.cpp won't start otherwise (src/llama-context.cpp: "V cache quantization requires flash_attn")."""
    cache_type = document.text("kv_cache", "v") or "f16"
    if document.text("flash_attention") in ("off", "false") and cache_type not in PLAIN_CACHE_TYPES:
        message = f"`{cache_type}` needs flash attention, and `flash_attention` is off"
        yield document.fault(("kv_cache", "v"), message)


def _arguments_beside_the_plan(document: Document) -> Iterator[Fault]:
    place = ("server", "extra_args")
    arguments = document.get(*place)
    for at, argument in enumerate(arguments.values if isinstance(arguments, Items) else ()):
        text = argument.text if isinstance(argument, Scalar) else None
        if text is not None and (why := argument_refusal(text)):
            # What follows a `=` is not shown: it may be a secret.
            yield document.fault((*place, at), f"`{option_of(text)}` must not stand here: {why}")


def _layers_on_known_nodes(document: Document, inventory: Inventory) -> Iterator[Fault]:
    layers = document.get("split", "layers")
    names = [node.name for node in inventory.nodes]
    for share, entry in layers.entries.items() if isinstance(layers, Map) else ():
        node = share.partition("/")[0]
        if node not in names:
            message = f"no node of the inventory is called `{node}`" + suggestion(node, names)
        elif inventory.node(node).serve_only:
            message = f"`{node}` is `serve_only` in the inventory, so its devices take no layers"
        else:
            continue
        yield fault_at(document.file, entry.mark, ("split", "layers", share), message)
