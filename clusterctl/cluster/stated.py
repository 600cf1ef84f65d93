"""Which build a node runs, as far as its own programs and libraries tell. Pure."""

from __future__ import annotations

from dataclasses import replace

from clusterctl.cluster.facts import NodeFacts
from clusterctl.llama.build import known_commit
from clusterctl.llama.library_commit import DIRTY
from clusterctl.llama.sameness import commits_agree
from clusterctl.model import Build, Role


def stated_build(own: NodeFacts | None) -> Build | None:
    """Return the build of the program that a node runs for the cluster; `None` if nothing tells it.

    The library that the program loads has the last word on the commit; numbers and versions are what
    `llama-server` says, if it may speak for the program at all.
    """
    if own is None:
        return None
    server = own.build if server_speaks(own) else None
    if not own.library_commits:
        return server
    commit = known_commit(server) if server else None
    named = {word for word in own.library_commits if commit and commits_agree(commit, word.removesuffix(DIRTY))}
    if server is None or (commit and not named):
        return Build(commit=_only(own.library_commits)) if _only(own.library_commits) else None
    if commit in named or any(not word.endswith(DIRTY) for word in named):
        return server
    return replace(server, commit=_only(named or own.library_commits))


def server_speaks(own: NodeFacts) -> bool:
    """Whether `llama-server` is the program itself, as on the head, or lies beside a worker's."""
    if own.role is Role.HEAD:
        return True
    server, worker = own.server_program, own.worker_program
    return server is not None and worker is not None and server.directory == worker.directory


def is_changed(own: NodeFacts) -> bool:
    """Whether a library tells that it was built with uncommitted changes."""
    return any(commit.endswith(DIRTY) for commit in own.library_commits)


def _only(commits: frozenset[str] | set[str]) -> str | None:
    return next(iter(commits)) if len(commits) == 1 else None
