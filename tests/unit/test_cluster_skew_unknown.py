"""Whatever workers and their libraries say, in whatever mixture: a match is only what is proven."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from clusterctl.cluster.examine import skew_error
from clusterctl.cluster.facts import NodeFacts
from clusterctl.cluster.skew import judge_skew
from tests.unit.cluster_samples import VERSION, facts, inventory
from tests.unit.test_cluster_skew import OTHER_COMMIT, OTHER_VERSION

DECIMAL_CONSTANT = "1812433253"  # of the C++ library's random numbers; every binary has it


@dataclass(frozen=True)
class Sort:
    """A kind of node: what its server says, and what its worker's library names."""

    version: str
    commits: Sequence[str]
    has_worker: bool = True

    def facts(self, name: str) -> NodeFacts:
        programs = [*(["llama-server"] if self.version else []), *(["ggml-rpc-server"] if self.has_worker else [])]
        return facts(name, version=self.version, commits=self.commits, programs=programs)

    @property
    def surely_has_head_commit(self) -> bool:
        """Whether these texts prove commit 3ce7da2, told without any of the code under test."""
        if not self.has_worker:
            return False
        named = [commit for commit in self.commits if commit != DECIMAL_CONSTANT]
        return "3ce7da2" in named if named else "(3ce7da2)" in self.version


versions = st.sampled_from(
    ["", VERSION, OTHER_VERSION, "version: 10092 (unknown)\n", "version: 1 (3ce7da2)\n", "??"]
)
commit_lists = st.lists(st.sampled_from(["3ce7da2", OTHER_COMMIT, "3ce7da2-dirty", DECIMAL_CONSTANT]), max_size=2)
sorts = st.builds(Sort, versions, commit_lists, st.booleans())


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from(["w1", "w2"]), sorts, max_size=2), st.booleans())
def test_unknown_is_never_a_match(workers: Mapping[str, Sort], head_is_known: bool) -> None:
    known = {name: sort.facts(name) for name, sort in workers.items()}
    head = facts("head", version=VERSION if head_is_known else "", commits=[])
    report = judge_skew(inventory(), {**known, "head": head})
    if report.status == "match":
        assert head_is_known
        assert set(workers) == {"w1", "w2"}
        assert all(sort.surely_has_head_commit for sort in workers.values())
        assert skew_error(report) is None
    else:
        assert skew_error(report) is not None
