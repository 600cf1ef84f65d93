"""The tensors that workers keep on disk: a full disk would leave damaged weights there, so there must be room."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.cluster.cache import CacheDisk, cache_problems, parse_cache_disk
from clusterctl.cluster.cache_room import cache_advice, demand_room
from clusterctl.cluster.facts import NodeFacts
from clusterctl.errors import PlanDoesNotFit
from clusterctl.model import MIB, Memory, Offer, Severity, Share, Split
from tests.unit.cluster_samples import NODES, all_facts, facts, inventory

CACHING = inventory(NODES.replace("{name: w1, role: worker}", "{name: w1, role: worker, rpc: {cache: true}}"))
GIB = 1024


def share(node: str, device: str, model_mib: int) -> Share:
    offer = Offer(node, device, "", "cuda", "10.10.0.21:50052", 0)
    return Share(offer, 0, 7, has_output=False, slots=8, memory=Memory(model_bytes=model_mib * MIB))


# Two devices of w1 are to hold 40 GiB between them.
SPLIT = Split(
    strategy="memory",
    n_layer=16,
    shares=(share("w1", "CUDA0", 30 * GIB), share("w1", "CUDA1", 10 * GIB), share("w2", "CUDA0", 500 * GIB)),
    unused=(),
    host=Memory(),
)


def with_disk(text: str) -> dict[str, NodeFacts]:
    return all_facts(w1=facts("w1", changes={"cache": text}))


HEADING = "Filesystem     1024-blocks     Used Available Capacity Mounted on\n"


def disk(used_gib: int, free_gib: int) -> dict[str, NodeFacts]:
    return with_disk(f"{used_gib << 20}\n{HEADING}/dev/vda 9000000000 100 {free_gib << 20} 1% /\n")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "12",
        "a\nb",
        f"1\n{HEADING}",
        "1\ndf: /root/.cache: Stale file handle\n",
        f"1\n{HEADING}/dev/vda 10 5 -5 50% /\n",
        f"1\n{HEADING}/dev/vda - - - - /\n",
    ],
)
def test_an_answer_that_can_not_be_read_is_unknown(text: str) -> None:
    assert parse_cache_disk(text).free_mib is None


@given(text=st.text())
def test_no_answer_breaks_the_reading(text: str) -> None:
    parse_cache_disk(text)


@pytest.mark.parametrize(
    "row",
    [
        "/dev/vda         264212084 33278816      4096      32% /",
        "//box/My Share 100% 7          10        5      4096     50% /mnt/a 1 2 3 4% /b",
        "overlay          10         0      4096       - /",
        "/dev/disk3s5     10         5      4096     7%    /System/Volumes/Data",
    ],
)
def test_sizes_are_kib(row: str) -> None:
    assert parse_cache_disk(f"2048\n{HEADING}{row}\n") == CacheDisk(used_mib=2, free_mib=4)


def test_weights_that_have_room_are_fine() -> None:
    demand_room(CACHING, disk(used_gib=0, free_gib=40), SPLIT)
    assert list(cache_advice(CACHING, disk(used_gib=0, free_gib=40), SPLIT)) == []


def test_a_disk_that_is_too_small_is_refused_with_both_sizes() -> None:
    with pytest.raises(PlanDoesNotFit, match=r"w1: .*hold 40\.0 GiB.*room for 39\.0 GiB"):
        demand_room(CACHING, disk(used_gib=9, free_gib=30), SPLIT)


def test_weights_that_may_be_cached_already_are_a_warning() -> None:
    facts_of_nodes = disk(used_gib=35, free_gib=10)
    demand_room(CACHING, facts_of_nodes, SPLIT)
    (advice,) = cache_advice(CACHING, facts_of_nodes, SPLIT)
    assert advice.code == "cache-tight"
    assert "--purge-cache" in advice.message


def test_an_unknown_disk_is_refused() -> None:
    with pytest.raises(PlanDoesNotFit, match="unknown amount"):
        demand_room(CACHING, with_disk(""), SPLIT)
    (problem,) = cache_problems(CacheDisk(), is_wanted=True)
    assert (problem.code, problem.severity) == ("disk-unknown", Severity.ERROR)


def test_nodes_without_a_cache_need_no_disk() -> None:
    demand_room(inventory(), with_disk(""), SPLIT)
    assert list(cache_problems(CacheDisk(), is_wanted=False)) == []


def test_a_cache_that_is_there_is_shown_with_its_size_also_where_it_is_not_wanted_now() -> None:
    (problem,) = cache_problems(CacheDisk(used_mib=12 * GIB, free_mib=5 * GIB), is_wanted=False)
    assert problem.severity is Severity.NOTE
    assert "12.0 GiB, and 5.0 GiB are free" in problem.message
