"""Whether a cluster is meant to be up: what its record says, and what follows from it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from clusterctl.cluster.enrolment import NotWanted, demand_wanted
from clusterctl.cluster.membership import Membership, parse_membership
from clusterctl.cluster.observation import Observation
from clusterctl.cluster.standing import Standing
from clusterctl.llama.serving import Pulse, Slot, has_advanced
from tests.unit.cluster_samples import facts, inventory
from tests.unit.test_cluster_standing import WHOLE, membership_text, standing


def membership(*names: str) -> Membership:
    parsed = parse_membership(membership_text(*names))
    assert parsed is not None
    return parsed


WANTED = membership("w1", "w2", "head")


def seen(text: str | None) -> dict[str, Observation]:
    head = facts("head", changes={"cluster": text} if text else {})
    return {"head": head.observation}


def test_a_cluster_on_record_is_meant_to_be_up() -> None:
    assert WANTED.is_wanted
    demand_wanted(seen(WANTED.to_json()), inventory())


@pytest.mark.parametrize(
    "unwanted",
    [replace(WANTED, is_leaving=True), WANTED.without({"head"}), WANTED.without({"head", "w1"})],
    ids=["a down has begun", "its head was taken down", "one worker is left"],
)
def test_a_cluster_that_is_being_taken_down_is_not(unwanted: Membership) -> None:
    assert parse_membership(unwanted.to_json()) == unwanted
    assert not unwanted.is_wanted
    with pytest.raises(NotWanted, match="being taken down"):
        demand_wanted(seen(unwanted.to_json()), inventory())


def test_a_cluster_without_a_record_is_not() -> None:
    with pytest.raises(NotWanted, match="no cluster is on record"):
        demand_wanted(seen(None), inventory())


def test_a_record_of_before_there_was_such_a_mark_is_read() -> None:
    old = json.loads(WANTED.to_json())
    del old["is_leaving"]
    assert parse_membership(json.dumps(old)) == WANTED


def test_whatever_a_begun_down_has_left_is_cleared_by_up() -> None:
    leaving = replace(WANTED, is_leaving=True).to_json()
    assert standing(WHOLE, membership=leaving) is Standing.REMAINS


def test_a_request_that_was_only_taken_up_is_no_progress() -> None:
    idle = Pulse(0, True, (Slot(0, is_busy=False),))
    taken_up = Pulse(2, True, (Slot(0, is_busy=True, task=1, prompt_tokens=2),))
    answered = Pulse(3, True, (Slot(0, is_busy=True, task=1, prompt_tokens=2, decoded_tokens=1),))
    given_back = Pulse(4, True, (Slot(0, is_busy=False, task=1, prompt_tokens=2, decoded_tokens=1),))
    assert not has_advanced(idle, taken_up)
    assert has_advanced(idle, answered)
    assert has_advanced(taken_up, answered)
    assert has_advanced(answered, given_back)
