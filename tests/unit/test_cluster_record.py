"""What is written down on the nodes comes back as it was, or not at all."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.cluster.membership import Member, Membership, parse_membership, targets_of
from clusterctl.cluster.record import Process, ProcessState, Record, parse_process
from clusterctl.model import Role
from clusterctl.remote.target import Destination
from tests.unit.cluster_samples import inventory

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
ports = st.integers(1, 65535)
roles = st.sampled_from(Role)
records = st.builds(
    Record,
    cluster=texts,
    node=texts,
    role=roles,
    argv=st.lists(texts, max_size=5).map(tuple),
    address=texts,
    port=ports,
    build=texts,
    owner=texts,
    started_at=texts,
    inputs=texts,
    env=st.dictionaries(texts, texts, max_size=3),
)
destinations = st.none() | st.builds(
    Destination,
    host=texts,
    user=st.none() | texts,
    port=st.none() | ports,
    identity_file=st.none() | texts,
    known_hosts=st.none() | texts,
    connect_timeout_s=st.floats(1, 100),
)
members = st.builds(
    Member, name=texts, role=roles, destination=destinations, address=texts, port=ports, hostname=st.none() | texts
)
memberships = st.builds(
    Membership,
    members=st.lists(members, min_size=1, max_size=4).map(tuple),
    url=texts,
    alias=texts,
    is_leaving=st.booleans(),
    former=st.lists(members, max_size=2).map(tuple),
)

RECORD = Record("demo", "w1", Role.WORKER, ("/opt/w", "-p", "1"), "10.10.0.21", 50052, "b1", "me", "now", "digest")
MEMBERSHIP = Membership(
    (
        Member("w1", Role.WORKER, Destination("w1.lan"), "10.10.0.21", 50052),
        Member("head", Role.HEAD, None, "127.0.0.1", 8080),
    ),
    "http://127.0.0.1:8080",
    "demo",
)


@given(records)
def test_a_record_comes_back_as_it_was_written(record: Record) -> None:
    text = f"running\n4711\n\nsame\n{record.to_json()}"
    assert parse_process(text) == Process(record, ProcessState.RUNNING, 4711, None)


@given(memberships)
def test_a_membership_comes_back_as_it_was_written(membership: Membership) -> None:
    assert parse_membership(membership.to_json()) == membership


def test_the_nodes_own_lines_are_read_before_the_record() -> None:
    ended = parse_process(f"ended\n4711\n137\nchanged\n{RECORD.to_json()}")
    assert ended == Process(RECORD, ProcessState.ENDED, 4711, 137, program_changed=True)
    assert not ended.runs
    starting = parse_process(f"starting\n\n\nsame\n{RECORD.to_json()}")
    assert starting is not None
    assert (starting.pid, starting.exit_status, starting.runs) == (None, None, False)


def test_what_a_later_version_has_written_down_besides_is_passed_over() -> None:
    raw = json.loads(MEMBERSHIP.to_json())
    for each in (raw, *raw["members"], raw["members"][0]["destination"]):
        each["of_tomorrow"] = 1
    assert parse_membership(json.dumps(raw)) == MEMBERSHIP
    record = json.dumps({**json.loads(RECORD.to_json()), "of_tomorrow": 1})
    assert parse_process(f"running\n1\n\nsame\n{record}") == Process(RECORD, ProcessState.RUNNING, 1, None)


def test_what_an_earlier_version_has_not_written_down_is_not_known() -> None:
    raw = json.loads(MEMBERSHIP.to_json())
    for member in raw["members"]:
        del member["hostname"], member["rpc_protocol"]
    assert parse_membership(json.dumps(raw)) == MEMBERSHIP


@given(st.data())
def test_a_record_that_is_cut_short_is_none(data: st.DataObject) -> None:
    whole = f"running\n4711\n\nsame\n{RECORD.to_json()}"
    assert parse_process(whole[: data.draw(st.integers(0, len(whole) - 1))]) is None


@given(st.data())
def test_a_membership_that_is_cut_short_is_none(data: st.DataObject) -> None:
    whole = MEMBERSHIP.to_json()
    assert parse_membership(whole[: data.draw(st.integers(0, len(whole) - 1))]) is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(list(json.loads(RECORD.to_json()))), json_values)
def test_a_record_with_a_damaged_part_is_read_or_none(key: str, value: object) -> None:
    document = json.dumps({**json.loads(RECORD.to_json()), key: value})
    process = parse_process(f"running\n1\n\nsame\n{document}")
    assert process is None or process.pid == 1


@given(st.sampled_from(["members", "url", "alias", "former"]), json_values)
def test_a_membership_with_a_damaged_part_is_read_or_none(key: str, value: object) -> None:
    document = json.dumps({**json.loads(MEMBERSHIP.to_json()), key: value})
    membership = parse_membership(document)
    assert membership is None or membership.members is not None


@pytest.mark.parametrize(
    "text", [None, "", "null", "[]", "{}", "[" * 100_000, "running\n1\n\nsame\n" + "[" * 100_000]
)
def test_nothing_or_nonsense_is_none(text: str | None) -> None:
    assert parse_membership(text) is None
    assert parse_process(text or "") is None


def test_the_members_that_are_clean_leave_the_membership() -> None:
    assert MEMBERSHIP.without({"w1"}).members == MEMBERSHIP.members[1:]
    assert MEMBERSHIP.without({"w1", "head"}).members == ()
    assert MEMBERSHIP.without({"stranger"}) == MEMBERSHIP


def test_once_nobody_is_left_nothing_is_kept() -> None:
    former = Member("w1@old.lan", Role.WORKER, Destination("old.lan"), "10.10.0.21", 50052)
    left = replace(MEMBERSHIP, former=(former,)).without({"w1", "head"})
    assert parse_membership(left.to_json()) == left
    assert left.without({"w1@old.lan"}).to_json() == ""


def test_an_inventory_says_where_each_node_is_reached() -> None:
    text = """
version: 1
cluster: demo
network: 10.10.0.0/24
nodes:
  - {name: w1, role: worker, host: w1.lan, ssh: {user: ops, port: 2222, identity_file: ~/k, connect_timeout: 3}}
  - {name: here, role: head, connection: local}
"""
    assert targets_of(inventory(text)) == {
        "w1": Destination("w1.lan", "ops", 2222, "~/k", None, 3),
        "here": None,
    }
