"""Write an inventory as people would: only what is needed, with comments that say where it comes from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from clusterctl.errors import UsageError
from clusterctl.escaping import escaped
from clusterctl.model import Role

# What every reader of YAML takes for text without quotes, wherever it stands; words and paths, IPv4 addresses.
_PLAIN = re.compile(r"(?:[A-Za-z/]|~/|\d+\.\d+\.\d)[A-Za-z0-9_/.~@+-]*", re.ASCII)
_NOT_TEXT = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})
_WIDTH = 110


@dataclass(frozen=True, slots=True)
class NodeDraft:
    """One node; what is `None` is left out. `host` is `None` for this machine; `comments` stand above the node."""

    name: str
    role: Role
    host: str | None
    user: str | None = None
    port: int | None = None
    backend: str | None = None
    serve_only: bool = False
    bin_dir: str | None = None
    rpc_address: str | None = None
    comments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class InventoryDraft:
    """An inventory to be written; `pin` is the build to offer as a pin."""

    cluster: str
    nodes: tuple[NodeDraft, ...]
    network: str | None = None
    network_comments: tuple[str, ...] = ()
    pin: str | None = None

    @property
    def bin_dir(self) -> str | None:
        """The directory of the programs that all nodes have in common."""
        own = {node.bin_dir for node in self.nodes}
        return own.pop() if len(own) == 1 else None


def inventory_text(draft: InventoryDraft) -> str:
    """Return the YAML text; `parse_inventory` reads from it what the draft says."""
    return "\n".join(_lines(draft)) + "\n"


def write_inventory(path: Path, text: str, *, replace: bool) -> None:
    """Write an inventory to a file, which must not exist unless `replace`.

    Raises:
        UsageError: if it exists, or can't be written.
    """
    try:
        with path.open("w" if replace else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise existing(path) from error
    except OSError as error:
        raise UsageError(
            f"{escaped(str(path))} can't be written: {error.strerror}", hint="name another file with -o"
        ) from error


def existing(path: Path) -> UsageError:
    """The error that a file is there already."""
    return UsageError(f"{escaped(str(path))} exists", hint="name another file with -o, or replace it with --force")


def _lines(draft: InventoryDraft) -> Iterator[str]:
    yield f"# Where the cluster {draft.cluster} runs, as `clusterctl init` found it. Change it as you like;"
    yield "# `clusterctl schema inventory` describes every key."
    yield ""
    yield "version: 1"
    yield f"cluster: {_scalar(draft.cluster)}"
    yield ""
    yield from _comments(draft.network_comments, "")
    if draft.network:
        yield f"network: {draft.network}"
    if draft.network or draft.network_comments:
        yield ""
    yield from _defaults(draft)
    yield "nodes:"
    for at, node in enumerate(draft.nodes):
        yield from [""] if at else []
        yield from _node(node, draft.bin_dir)


def _defaults(draft: InventoryDraft) -> Iterator[str]:
    if draft.bin_dir:
        yield "defaults:"
        yield "  llama:"
        yield f"    bin_dir: {_scalar(draft.bin_dir)}"
        if draft.pin:
            yield f"    # build: {escaped(draft.pin)}      # take the # away to refuse any other build"
        yield ""


def _node(node: NodeDraft, common_bin_dir: str | None) -> Iterator[str]:
    yield from _comments(node.comments, "  ")
    yield f"  - name: {_scalar(node.name)}"
    yield f"    host: {_scalar(node.host)}" if node.host else "    connection: local"
    yield f"    role: {node.role}"
    if node.backend:
        yield f"    backend: {_scalar(node.backend)}"
    if node.serve_only:
        yield "    serve_only: true"
    ssh = [*([f"user: {_scalar(node.user)}"] if node.user else []), *([f"port: {node.port}"] if node.port else [])]
    if ssh:
        yield f"    ssh: {{{', '.join(ssh)}}}"
    if node.bin_dir and node.bin_dir != common_bin_dir:
        yield f"    llama: {{bin_dir: {_scalar(node.bin_dir)}}}"
    if node.rpc_address:
        yield f"    rpc: {{address: {_scalar(node.rpc_address)}}}"


def _comments(texts: Sequence[str], margin: str) -> Iterator[str]:
    for text in texts:
        words, line = escaped(text).split(), f"{margin}#"
        for word in words:
            if len(line) + 1 + len(word) > _WIDTH and line.strip() != "#":
                yield line
                line = f"{margin}#"
            line += f" {word}"
        yield line


def _scalar(text: str) -> str:
    """Quote what YAML, or the filling in of variables, would take for something else."""
    if _PLAIN.fullmatch(text) and text.lower() not in _NOT_TEXT:
        return text
    return "'" + text.replace("${", "$${").replace("'", "''") + "'"
