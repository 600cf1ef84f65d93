"""The commit inside libggml-base: it tells the build of a worker, which has no `--version`.

ggml's CMakeLists.txt compiles the abbreviated commit in as a plain string, with `-dirty` for local changes.
"""

from __future__ import annotations

import re

from clusterctl.llama.build import known_commit
from clusterctl.llama.sameness import Comparison, Sameness, commits_agree
from clusterctl.model import Build

DIRTY = "-dirty"
_HEXADECIMAL_WORD = re.compile(rf"(?<![0-9a-zA-Z])[0-9a-f]+(?:{DIRTY})?(?![0-9a-zA-Z])")


def commit_candidates(text: str) -> frozenset[str]:
    """Return the strings of a binary that may be commits, from `LC_ALL=C grep -aoE '[0-9a-f]{7,}(-dirty)?'`.

    Libraries hold decimal constants (`1812433253`) and letter tables (`eaedeeefe`): only strings with letters
    and digits count, of the length of an abbreviated commit or a full one.
    """
    words = _HEXADECIMAL_WORD.findall(text)
    return frozenset(word for word in words if _looks_like_commit(word.removesuffix(DIRTY)))


def library_commit_verdict(build: Build | None, candidates: frozenset[str]) -> Comparison:
    """Compare a build with the `commit_candidates` of the worker's library.

    A commit of digits alone or of letters alone (1 in 30 of those with 7 digits) is not among the candidates,
    as it can't be told from the library's own tables; it never matches.
    """
    commit = known_commit(build) if build else None
    if commit is None:
        return Comparison(Sameness.UNKNOWN, "there is no commit to look for in the worker's library")
    found = {word for word in candidates if commits_agree(commit, word.removesuffix(DIRTY))}
    if any(not word.endswith(DIRTY) for word in found):
        return Comparison(Sameness.MATCH, f"the worker's library was built from commit {commit}")
    if found:
        return Comparison(
            Sameness.UNKNOWN, f"the worker's library was built from commit {commit} with uncommitted changes"
        )
    if candidates:
        others = ", ".join(sorted(candidates))
        return Comparison(Sameness.MISMATCH, f"the worker's library names commit {others}, not {commit}")
    return Comparison(Sameness.UNKNOWN, "the worker's library names no commit")


def _looks_like_commit(word: str) -> bool:
    of_commit_length = 7 <= len(word) <= 12 or len(word) == 40
    return of_commit_length and not word.isdigit() and not word.isalpha()
