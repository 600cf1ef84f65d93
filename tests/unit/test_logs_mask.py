"""What is given away in a support bundle: no secrets, and on request no names and no addresses."""

from __future__ import annotations

import json
import re
from ipaddress import IPv4Address, IPv4Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.cluster.mask import Mask, known_words
from clusterctl.cluster.plain import plain
from clusterctl.llama.secrets import hide_secrets, is_secret, without_secrets
from clusterctl.model import Device
from tests.unit.cluster_samples import ADDRESSES, NODES, all_facts, inventory

SITE = inventory(NODES.replace("{name: w1,", "{name: w1, host: strix1.attic.example, ssh: {user: alice},"))


@pytest.fixture
def mask() -> Mask:
    return Mask(known_words(SITE, all_facts()))


def test_names_and_addresses_become_words_that_tell_which_is_which(mask: Mask) -> None:
    line = "w1 listens on 10.10.0.21:50052, w2 on 10.10.0.22:50052; ssh alice@strix1.attic.example"
    assert mask(line) == (
        "node-1 listens on node-1-address-1:50052, node-2 on node-2-address-1:50052; ssh user-1@node-1"
    )


def test_a_stranger_is_always_the_same_stranger(mask: Mask) -> None:
    assert mask("from 192.0.2.7 and 192.0.2.8") == "from address-1 and address-2"
    assert mask("again 192.0.2.8") == "again address-2"
    assert mask("fe80::1c2 at 02:c1:ab:00:00:01") == "address-3 at address-4"


def test_users_in_home_directories_are_replaced(mask: Mask) -> None:
    assert mask("/home/bob/models/x.gguf and /Users/alice/x") == "/home/user-3/models/x.gguf and /Users/user-1/x"


@pytest.mark.parametrize(
    "text",
    [
        "1.10.123.104 I srv  llama_server: model loaded",
        "listening on http://127.0.0.1:8080 and 0.0.0.0",
        "netmask 255.255.255.0, build 0.6.0-dev, at 12:34:56",
        "ggml::backend std::vector<int>",
        "the head and a worker of root on localhost",
    ],
)
def test_what_gives_nobody_away_stays(mask: Mask, text: str) -> None:
    assert mask(text) == text


def test_a_part_of_a_word_is_no_name(mask: Mask) -> None:
    assert mask("gw1 w10 w1-old x.w1") == "gw1 w10 w1-old x.node-1"


@given(text=st.text(max_size=80), place=st.sampled_from(sorted(ADDRESSES.values())))
def test_no_address_of_a_node_is_left_however_it_is_surrounded(text: str, place: str) -> None:
    left = Mask(known_words(SITE, all_facts()))(f"{text} {place} {text}")
    assert place not in left or place in text


@given(address=st.ip_addresses(v=4))
def test_no_address_at_all_is_left_but_those_of_everybody(address: IPv4Address) -> None:
    everybodys = address in IPv4Network("127.0.0.0/8") or str(address).startswith(("255.", "0.0.0.0"))
    left = Mask({})(f"connect to {address}:50052 failed")
    assert (str(address) in left) is everybodys


@given(text=st.text())
def test_masking_twice_changes_nothing_more(text: str) -> None:
    mask = Mask(known_words(SITE, all_facts()))
    assert mask(mask(text)) == mask(text)


@pytest.mark.parametrize("name", ["LLAMA_API_KEY", "HF_TOKEN", "aws_secret", "DB_PASSWORD", "CREDENTIALS"])
def test_names_of_secrets_are_known(name: str) -> None:
    assert is_secret(name)
    assert hide_secrets({name: "hunter2", "GGML_RPC_NO_RDMA": "1"}) == {name: "***", "GGML_RPC_NO_RDMA": "1"}


@pytest.mark.parametrize("name", ["HSA_OVERRIDE_GFX_VERSION", "CUDA_VISIBLE_DEVICES", "PATH"])
def test_other_variables_are_shown(name: str) -> None:
    assert not is_secret(name)


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer abc.def-ghi",
        "token hf_ABCDEFGHIJKLMNOPQRST",
        "key sk-proj-0123456789abcdef",
        "GET https://ops:hunter2@models.example/x.gguf",
    ],
)
def test_what_looks_like_a_secret_is_hidden(text: str) -> None:
    hidden = without_secrets(text)
    assert "***" in hidden
    assert not re.search("abc.def|ABCDEF|0123456789|hunter2", hidden)


def test_values_become_json_with_every_text_rewritten_but_no_field_name() -> None:
    value = {"total_mib": (Device("total_mib", "total_mib", 24, None),), "set": [True, 1.5, None]}
    document = plain(value, lambda text: text.upper())
    assert document == {
        "TOTAL_MIB": [{"name": "TOTAL_MIB", "description": "TOTAL_MIB", "total_mib": 24, "free_mib": None}],
        "SET": [True, 1.5, None],
    }


def test_an_inventory_becomes_json() -> None:
    document = plain(SITE, str)
    assert isinstance(document, dict)
    assert document["network"] == "10.10.0.0/24"
    assert json.loads(json.dumps(document))["nodes"][0]["ssh"]["user"] == "alice"
