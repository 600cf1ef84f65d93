"""A support bundle: all that is known of a cluster in one file to send to somebody who helps.

Every part that can be had is in it; why others are not is in errors.json. Secrets are hidden always, names and
addresses on request.
"""

from __future__ import annotations

import io
import json
import os
import platform
import tarfile
import time
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from clusterctl import __version__
from clusterctl.cluster.examine import Examination, check_report, examine
from clusterctl.cluster.facts import NodeFacts
from clusterctl.cluster.logs import Logs, Wanted, read_logs
from clusterctl.cluster.mask import Mask, known_words
from clusterctl.cluster.plain import Rewrite, plain
from clusterctl.cluster.plan_report import plan_report
from clusterctl.cluster.prepare import prepare_plan
from clusterctl.cluster.running_head import keys_of
from clusterctl.cluster.session import session
from clusterctl.cluster.status import read_status
from clusterctl.config.inventory import Inventory
from clusterctl.config.recipe import Recipe
from clusterctl.errors import ClusterctlError, UsageError
from clusterctl.llama.arguments import secrets_in
from clusterctl.llama.secrets import HIDDEN, hide_secrets, is_secret, without_secrets

LOG_LINES = 10_000
FOLDER = "clusterctl-bundle"
SHORTEST_SECRET = 6

Value = TypeVar("Value")


@dataclass(slots=True)
class _Gathered:
    """The documents by file name, the logs by node, and the secrets that must be in neither."""

    documents: dict[str, object] = field(default_factory=dict)
    logs: dict[str, list[str]] = field(default_factory=dict)
    facts: Mapping[str, NodeFacts] = field(default_factory=dict)
    secrets: set[str] = field(default_factory=set)
    errors: dict[str, str] = field(default_factory=dict)

    async def attempt(self, part: str, work: Awaitable[Value]) -> Value | None:
        """Return what comes of the work; `None`, and the reason among the errors, if it fails."""
        try:
            return await work
        except ClusterctlError as error:
            self.errors[part] = str(error)
            return None


async def write_bundle(inventory: Inventory, recipe: Recipe | None, file: Path, *, mask: bool) -> tuple[str, ...]:
    """Gather everything, write it to a new file that only its owner may read, and return the names in it.

    Raises:
        UsageError: if the file is there already, or can't be written.
    """
    _demand_new(file)
    gathered = await _gather(inventory, recipe)
    rewrite = _rewriter(inventory, gathered, mask=mask)
    documents = {**gathered.documents, "errors.json": gathered.errors}
    texts = {
        name: json.dumps(plain(document, rewrite), indent=2, ensure_ascii=False) + "\n"
        for name, document in documents.items()
    }
    for node, lines in gathered.logs.items():
        texts[f"logs/{rewrite(node)}.log"] = "".join(f"{rewrite(line)}\n" for line in lines)
    _write(file, texts)
    return tuple(texts)


def _demand_new(file: Path) -> None:
    if file.exists():
        raise UsageError(f"{file} is there already", hint="name a new file; a bundle replaces none")
    if not file.parent.is_dir():
        raise UsageError(f"there is no directory {file.parent}", hint="make it, or name another file")


async def _gather(inventory: Inventory, recipe: Recipe | None) -> _Gathered:
    found = _Gathered()
    found.documents["version.json"] = {"clusterctl": __version__, "python": platform.python_version()}
    found.documents["inventory.json"] = _shown_inventory(inventory)
    if recipe is not None:
        found.documents["recipe.json"] = recipe
        found.secrets |= secrets_in(recipe.server.extra_args)
    looked = await found.attempt("check", _look(inventory, recipe, found))
    if looked is not None:
        found.documents["check.json"] = check_report(inventory, looked)
        found.documents["facts.json"] = [_shown_facts(inventory, own) for own in looked.facts.values()]
    status = await found.attempt("status", read_status(inventory, asks_token=False))
    if status is not None:
        found.documents["status.json"] = status
    if recipe is not None:
        plan = await found.attempt("plan", prepare_plan(inventory, recipe, allow_skew=True))
        if plan is not None:
            found.documents["plan.json"] = plan_report(plan)
    logs = await found.attempt("logs", read_logs(inventory, Wanted(lines=LOG_LINES)))
    if logs is not None:
        _add_logs(found, logs)
    return found


async def _look(inventory: Inventory, recipe: Recipe | None, found: _Gathered) -> Examination:
    async with session(inventory) as opened:
        looked = await examine(opened, inventory, recipe)
        found.facts = looked.facts
        for own in looked.facts.values():
            found.secrets |= _secrets_of(inventory, own)
        name = inventory.head.name
        head = looked.facts[name].observation.process(name) if name in looked.facts else None
        if head is not None:
            found.secrets |= set(await found.attempt("keys", keys_of(opened.nodes[name], head.record)) or ())
    return looked


def _secrets_of(inventory: Inventory, own: NodeFacts) -> set[str]:
    records = [process.record for process in own.observation.processes.values()]
    environments = [inventory.node(own.node).env, *(record.env for record in records)]
    in_environments = {value for env in environments for name, value in env.items() if is_secret(name)}
    return in_environments.union(*(secrets_in(record.argv) for record in records))


def _shown_inventory(inventory: Inventory) -> Inventory:
    """Without secrets, and without notes that mean something to their author only."""
    nodes = [node.model_copy(update={"env": hide_secrets(node.env), "labels": {}}) for node in inventory.nodes]
    return inventory.model_copy(update={"nodes": tuple(nodes), "defaults": type(inventory.defaults)()})


def _shown_facts(inventory: Inventory, own: NodeFacts) -> dict[str, object]:
    """What helps: without secrets, connections of other programs, and what only a machine can read."""
    seen = own.observation
    ports = {inventory.node(own.node).rpc.port, *(each.record.port for each in seen.processes.values())}
    processes = {
        name: replace(each, record=replace(each.record, env=hide_secrets(each.record.env)))
        for name, each in seen.processes.items()
    }
    return {
        "node": own.node,
        "system": seen.system,
        "memory": own.memory,
        "addresses": own.addresses,
        "interfaces": own.interfaces,
        "programs": own.programs,
        "build": own.build,
        "version_text": own.version_text,
        "devices_text": own.devices_text,
        "missing_libraries": own.missing_libraries,
        "files": own.files,
        "cache": own.cache,
        "sockets": [socket for socket in seen.sockets or () if socket.port in ports],
        "holders": seen.holders,
        "processes": processes,
        "membership": seen.membership,
        "lock": seen.lock,
    }


def _add_logs(found: _Gathered, logs: Logs) -> None:
    for line in logs.lines:
        found.logs.setdefault(line.node, []).append(line.text)
    found.documents["cause.json"] = logs.cause
    found.errors |= {f"logs of {node}": str(error) for node, error in logs.failed.items()}


def _rewriter(inventory: Inventory, found: _Gathered, *, mask: bool) -> Rewrite:
    masked = Mask(known_words(inventory, found.facts)) if mask else str
    # A shorter one would be found in words that mean nothing; one may be the beginning of another.
    long = (secret for secret in found.secrets if len(secret) >= SHORTEST_SECRET)
    secrets = sorted(long, key=len, reverse=True)

    def rewrite(text: str) -> str:
        for secret in secrets:
            text = text.replace(secret, HIDDEN)
        return masked(without_secrets(text))

    return rewrite


def _write(file: Path, texts: Mapping[str, str]) -> None:
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise _unwritable(file, error) from error
    try:
        with os.fdopen(descriptor, "wb") as raw, tarfile.open(fileobj=raw, mode="w:gz") as archive:
            for name, text in texts.items():
                data = text.encode(errors="backslashreplace")
                member = tarfile.TarInfo(f"{FOLDER}/{name}")
                member.size, member.mode, member.mtime = len(data), 0o600, int(time.time())
                archive.addfile(member, io.BytesIO(data))
    except OSError as error:
        file.unlink()
        raise _unwritable(file, error) from error


def _unwritable(file: Path, error: OSError) -> UsageError:
    return UsageError(f"{file} can't be written: {error.strerror}", hint="name a file that can")
