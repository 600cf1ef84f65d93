"""The exact program calls of a plan. Pure.

One device order feeds `--rpc`, `--device` and `--tensor-split`: the order of the split's shares.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clusterctl.cluster.cache import cache_directory
from clusterctl.cluster.facts import NodeFacts
from clusterctl.config.inventory import Inventory, Node
from clusterctl.config.recipe import Recipe
from clusterctl.errors import BuildSkew, UsageError
from clusterctl.llama.flags import spell
from clusterctl.model import NodeCommand, Offer, Role, Split

TRACE = "trace"
Settings = dict[str, str | int | bool]


def endpoints_of(split: Split) -> tuple[str, ...]:
    """The RPC endpoints that the split uses, each once, in device order."""
    endpoints = (share.offer.rpc_endpoint for share in split.shares)
    return tuple(dict.fromkeys(endpoint for endpoint in endpoints if endpoint is not None))


def expected_names(split: Split) -> tuple[str, ...]:
    """What the head is expected to call the split's devices; after the start, the head's own listing decides.

    Builds since 2025-10 number remote devices over the whole `--rpc` list (llama.cpp pull request 16276).
    """
    remote = [share for share in split.shares if not share.offer.is_local]
    numbers = {share.offer.label: f"RPC{number}" for number, share in enumerate(remote)}
    return tuple(numbers.get(share.offer.label, share.offer.device) for share in split.shares)


def worker_commands(inventory: Inventory, facts: Mapping[str, NodeFacts], split: Split) -> tuple[NodeCommand, ...]:
    """The call of every worker that the split uses, in inventory order."""
    by_node: dict[str, list[Offer]] = {}
    for share in split.shares:
        if not share.offer.is_local:
            by_node.setdefault(share.offer.node, []).append(share.offer)
    return tuple(_worker_command(inventory, inventory.node(n), facts[n], o) for n, o in by_node.items())


def _worker_command(inventory: Inventory, node: Node, facts: NodeFacts, offers: Sequence[Offer]) -> NodeCommand:
    if facts.worker_program is None or facts.worker_flags is None:
        raise UsageError("the worker program prints no usage that can be read", node=node.name)
    endpoint = offers[0].rpc_endpoint
    assert endpoint is not None
    address, _, port = endpoint.rpartition(":")
    wanted: dict[str, str | int | bool] = {
        "host": address,
        "port": port,
        "devices": ",".join(offer.device for offer in offers),
        "cache": node.rpc.cache,
    }
    if node.rpc.threads is not None:
        wanted["threads"] = node.rpc.threads
    env = dict(node.env)
    if node.rpc.cache:
        env["LLAMA_CACHE"] = cache_directory(inventory.cluster, facts.observation.system.home)
    argv = (facts.worker_program.path, *spell(facts.worker_flags, wanted))
    return NodeCommand(node.name, Role.WORKER, argv, env)


def head_command(inventory: Inventory, recipe: Recipe, facts: NodeFacts, settings: Settings) -> NodeCommand:
    """The head's call with these settings, spelled as its own build understands them.

    Raises:
        UsageError: for an option that the head's build does not have.
    """
    node = inventory.head
    if facts.head_program is None or facts.flags is None:
        raise BuildSkew("the head's program prints no options that can be read", node=node.name)
    argv = (*facts.head_program, *spell(facts.flags, settings), *recipe.server.extra_args)
    return NodeCommand(node.name, Role.HEAD, argv, dict(node.env))


def head_settings(
    recipe: Recipe, facts: NodeFacts, split: Split, names: Sequence[str], *, draft_device: str | None
) -> Settings:
    """Everything the head is told, by the names of flags.yaml.

    `names` are what the head calls the split's devices, in device order; `draft_device` is where the draft model
    goes, `None` for the head's CPU.
    """
    home = facts.observation.system.home
    return {**_placement(split, names), **_serving(recipe, home), **_drafting(recipe, home, draft_device)}


def _placement(split: Split, names: Sequence[str]) -> Settings:
    endpoints = endpoints_of(split)
    wanted: Settings = {
        "device": ",".join(names) or "none",
        "n_gpu_layers": split.n_layer + 1 - split.cpu_layers if names else 0,
        "fit": "off",
    }
    if names:
        wanted["split_mode"] = "layer"
        wanted["tensor_split"] = ",".join(str(slots) for slots in split.tensor_split)
    if endpoints:
        wanted["rpc"] = ",".join(endpoints)
    return wanted


def _serving(recipe: Recipe, home: str) -> Settings:
    wanted: Settings = {
        "model": in_home(recipe.model.path, home),
        "context": recipe.context,
        "parallel": recipe.parallel,
        "cache_type_k": recipe.kv_cache.k,
        "cache_type_v": recipe.kv_cache.v,
        "flash_attention": recipe.flash_attention,
        "batch_logical": recipe.batch.logical,
        "batch_physical": recipe.batch.physical,
        "load_mode": recipe.load_mode,
        "host": recipe.server.host,
        "port": recipe.server.port,
        "metrics": True,
        "verbosity": TRACE,
    }
    if recipe.model.alias is not None:
        wanted["alias"] = recipe.model.alias
    if recipe.kv_cache.unified is not None:
        wanted["kv_unified"] = recipe.kv_cache.unified
    if recipe.server.api_key_file is not None:
        wanted["api_key_file"] = in_home(recipe.server.api_key_file, home)
    if recipe.server.tls is not None:
        wanted["ssl_key_file"] = in_home(recipe.server.tls.key_file, home)
        wanted["ssl_cert_file"] = in_home(recipe.server.tls.cert_file, home)
    return wanted


def _drafting(recipe: Recipe, home: str, device: str | None) -> Settings:
    draft = recipe.draft
    if draft is None:
        return {}
    if draft.type != "model":
        wanted: Settings = {"draft_type": draft.type}
        if draft.max_tokens is not None:
            wanted[f"{draft.type.replace('-', '_')}_max_tokens"] = draft.max_tokens
        return wanted
    wanted = {
        "draft_type": "draft-simple",
        "draft_model": in_home(str(draft.path), home),
        # Without a device of its own, the draft model would be spread over all devices, remote ones too.
        "draft_device": device or "none",
        "draft_n_gpu_layers": 999 if device else 0,
    }
    if draft.max_tokens is not None:
        wanted["draft_max_tokens"] = draft.max_tokens
    return wanted


def in_home(path: str, home: str) -> str:
    """A path of the node with its `~/` written out, as no shell will do it."""
    return f"{home}/{path[2:]}" if path.startswith("~/") else path
