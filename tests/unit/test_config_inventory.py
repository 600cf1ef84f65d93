"""Inventories: what they mean, and every way they can be wrong."""

from __future__ import annotations

from ipaddress import IPv4Network

import pytest

from clusterctl.config.inventory import Inventory
from clusterctl.config.loading import parse_inventory
from clusterctl.errors import ConfigError, UsageError
from clusterctl.model import Role

HEAD = "version: 1\ncluster: c\nnetwork: 10.0.0.0/24\nnodes:\n"
ONE = HEAD + "  - {name: h, role: head}\n"


def parse(text: str, **environment: str) -> Inventory:
    return parse_inventory(text, "i.yaml", environment)


def faults(text: str, **environment: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse(text, **environment)
    return [str(fault) for fault in caught.value.faults]


def node_fault(keys: str) -> str:
    """Return the one fault of a worker with these keys, without its place."""
    found = faults(ONE + f"  - {{name: w, role: worker, {keys}}}\n")
    assert len(found) == 1, found
    return found[0].partition(": nodes[1]")[2].lstrip(".")


CONTRACT = """\
version: 1
cluster: homelab
network: 10.10.0.0/24
defaults:
  ssh: {user: ops, port: 22, identity_file: ~/.ssh/id, known_hosts: ~/.ssh/known_hosts, connect_timeout: 10}
  llama: {bin_dir: /opt/llama.cpp/bin, build: b11434}
nodes:
  - name: strix1
    host: strix1.lan
    role: worker
    backend: rocm
    rpc: {port: 50052, address: 10.10.0.21, interface: usb4, devices: [ROCm0], threads: 8, cache: true}
    memory: {reserve_mib: 4096, limit_mib: 98304}
    speed: {bandwidth_gb_s: 256}
    env: {HSA_OVERRIDE_GFX_VERSION: 11.5.1}
    labels: {site: attic}
  - name: rtx
    host: 192.168.1.30
    role: head
    backend: cuda
  - name: here
    connection: local
    role: worker
    backend: cpu
"""


def test_every_key_arrives_with_its_type() -> None:
    inventory = parse(CONTRACT)
    strix = inventory.node("strix1")
    assert (inventory.cluster, inventory.network) == ("homelab", IPv4Network("10.10.0.0/24"))
    assert (strix.host, strix.role, strix.backend, strix.connection) == (
        "strix1.lan",
        Role.WORKER,
        "rocm",
        "ssh",
    )
    assert (strix.rpc.port, strix.rpc.address, strix.rpc.interface) == (50052, "10.10.0.21", "usb4")
    assert (strix.rpc.devices, strix.rpc.threads, strix.rpc.cache) == (("ROCm0",), 8, True)
    assert (strix.memory.reserve_mib, strix.memory.limit_mib) == (4096, 98304)
    assert strix.env == {"HSA_OVERRIDE_GFX_VERSION": "11.5.1"}
    assert strix.labels == {"site": "attic"}
    assert strix.serve_only is False
    assert inventory.head.name == "rtx"
    assert [worker.name for worker in inventory.workers] == ["strix1", "here"]


def test_defaults_reach_every_node() -> None:
    for node in parse(CONTRACT).nodes:
        assert (node.ssh.user, node.ssh.port, node.ssh.connect_timeout_s) == ("ops", 22, 10)
        assert (node.ssh.identity_file, node.ssh.known_hosts) == ("~/.ssh/id", "~/.ssh/known_hosts")
        assert (node.llama.bin_dir, node.llama.build) == ("/opt/llama.cpp/bin", "b11434")


def test_maps_of_defaults_merge_and_the_nodes_own_values_win() -> None:
    node = parse(
        "version: 1\ncluster: c\n"
        "defaults: {env: {A: 1, B: 2}, ssh: {user: ops, port: 22}, rpc: {devices: [CUDA0, CUDA1]},\n"
        "           backend: cuda, llama: {build: b5}}\n"
        "nodes:\n"
        "  - {name: h, role: head, env: {B: 3}, ssh: {port: 2222}, rpc: {devices: [CPU]}, backend: cpu,\n"
        "     llama: {build: null}}\n"
    ).head
    assert node.env == {"A": "1", "B": "3"}
    assert (node.ssh.user, node.ssh.port) == ("ops", 2222)
    assert node.rpc.devices == ("CPU",)
    assert node.backend == "cpu"
    assert node.llama.build is None


def test_what_is_left_out_has_safe_values() -> None:
    node = parse("version: 1\ncluster: c\nnodes: [{name: h, role: head}]\n").head
    assert node.host == "h"
    assert (node.connection, node.backend, node.serve_only) == ("ssh", None, False)
    assert (node.ssh.user, node.ssh.port, node.ssh.connect_timeout_s) == (None, None, 10)
    assert (node.rpc.port, node.rpc.address, node.rpc.devices, node.rpc.cache) == (50052, None, None, False)
    assert (node.memory.reserve_mib, node.memory.limit_mib) == (None, None)


def test_a_section_with_all_its_keys_commented_out_counts_as_left_out() -> None:
    assert parse(ONE + "    # rpc\ndefaults:\n  rpc:\n    # port: 1\n").head.rpc.port == 50052


def test_names_labels_and_variables_keep_the_digits_that_were_written() -> None:
    node = parse(
        "version: 1\ncluster: 01\nnodes: [{name: 007, role: head, env: {V: 11.0}, labels: {1: 2_0}}]\n"
    ).head
    assert (node.name, node.env, node.labels) == ("007", {"V": "11.0"}, {"1": "2_0"})


def test_bandwidth_is_one_figure_for_all_devices_or_one_for_each() -> None:
    one = parse(ONE.replace("role: head", "role: head, speed: {bandwidth_gb_s: 256}")).head.speed
    each = parse(ONE.replace("role: head", "role: head, speed: {bandwidth_gb_s: {CUDA0: 936.2}}")).head.speed
    assert (one.bandwidth_of("CUDA0"), one.bandwidth_of("CUDA1")) == (256.0, 256.0)
    assert (each.bandwidth_of("CUDA0"), each.bandwidth_of("CUDA1")) == (936.2, None)


def test_arithmetic_is_told_in_the_same_way() -> None:
    each = parse(ONE.replace("role: head", "role: head, speed: {fp16_tflop_s: {CUDA0: 142}}")).head.speed
    assert (each.fp16_tflop_s_of("CUDA0"), each.fp16_tflop_s_of("CUDA1")) == (142.0, None)
    assert each.bandwidth_of("CUDA0") is None


PORT_FROM_ENVIRONMENT = ONE + "  - name: w\n    role: worker\n    rpc:\n      port: ${PORT:-50052}\n"


def test_a_filled_variable_takes_the_type_of_its_key() -> None:
    text = PORT_FROM_ENVIRONMENT
    assert parse(text).node("w").rpc.port == 50052
    assert parse(text, PORT="6000").node("w").rpc.port == 6000
    assert faults(text, PORT="70000") == [
        "i.yaml:9:13: nodes[1].rpc.port: must be 1..65535 (got 70000 from ${PORT:-50052})"
    ]


def test_an_unset_variable_is_one_fault_and_not_a_wrong_type_too() -> None:
    assert faults(PORT_FROM_ENVIRONMENT.replace(":-50052", "")) == [
        (
            "i.yaml:9:13: nodes[1].rpc.port: the environment variable `PORT` is not set; "
            "set it, or write ${PORT:-default}"
        )
    ]


def test_an_unknown_node_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UsageError, match="no node is called `strix`; did you mean `strix1`") as caught:
        parse(CONTRACT).node("strix")
    assert caught.value.hint == "the inventory has: strix1, rtx, here"


def test_all_faults_of_a_file_are_told_at_once_in_its_order() -> None:
    text = """\
version: 2
netwrk: 10.0.0.0/24
defaults:
  ssh: {prot: 22}
  host: x
nodes:
  - name: a
    role: worker
    rpc: {port: 70000, address: 8.8.8.8}
  - name: a
    role: boss
    memory: {reserve_mib: lots}
    speed: {bandwidth_gb_s: {ROCm0: 0, "bad key": 1}}
  - role: worker
    rpc: {devices: []}
"""
    assert faults(text) == [
        "i.yaml:1:1: `cluster` is missing",
        "i.yaml:1:10: version: must be 1 (got 2)",
        "i.yaml:2:1: unknown key `netwrk`; did you mean `network`?",
        "i.yaml:4:9: defaults.ssh: unknown key `prot`; did you mean `port`?",
        (
            "i.yaml:5:3: defaults: unknown key `host`; known keys: connection, backend, serve_only, ssh, llama, "
            "rpc, memory, speed, env, labels"
        ),
        "i.yaml:9:17: nodes[0].rpc.port: must be 1..65535 (got 70000)",
        (
            "i.yaml:9:33: nodes[0].rpc.address: must be a private address: RPC has neither password nor "
            "encryption (got 8.8.8.8)"
        ),
        "i.yaml:10:11: nodes[1].name: `a` is already the name of nodes[0]",
        "i.yaml:11:11: nodes[1].role: must be one of head, worker (got boss)",
        "i.yaml:12:27: nodes[1].memory.reserve_mib: must be a whole number (got lots)",
        "i.yaml:13:37: nodes[1].speed.bandwidth_gb_s.ROCm0: must be a number above 0 (got 0)",
        (
            "i.yaml:13:40: nodes[1].speed.bandwidth_gb_s: key `bad key` must be a device as llama.cpp lists it, "
            "such as CUDA0"
        ),
        "i.yaml:14:5: nodes[2]: `name` is missing",
        "i.yaml:15:20: nodes[2].rpc.devices: must not be empty (got a list)",
    ]


def test_a_fault_of_defaults_is_told_once_and_where_it_stands() -> None:
    text = ONE + "  - {name: w, role: worker}\ndefaults:\n  rpc: {port: 0}\n"
    assert faults(text) == ["i.yaml:8:15: defaults.rpc.port: must be 1..65535 (got 0)"]


@pytest.mark.parametrize(
    ("keys", "fault"),
    [
        ("backend: roc", "backend: must be one of cuda, rocm, vulkan, metal, sycl, cpu (got roc)"),
        ("connection: tcp", "connection: must be one of ssh, local (got tcp)"),
        ("serve_only: maybe", "serve_only: must be true or false (got maybe)"),
        ("ssh: ops", "ssh: must be a map of `key: value` lines (got ops)"),
        ("ssh: [ops]", "ssh: must be a map of `key: value` lines (got a list)"),
        ("env: [A=1]", "env: must be a map of `key: value` lines (got a list)"),
        ("env: {A-B: 1}", "env: key `A-B` must be the name of an environment variable"),
        ("env: {A: [1]}", "env.A: must be text (got a list)"),
        ("env: {A:}", "env.A: must be text (got nothing)"),
        ("labels: {'': 1}", "labels: key `` must not be empty"),
        ("ssh: {port: 22.0}", "ssh.port: must be a whole number (got 22.0)"),
        ("ssh: {port: 022}", "ssh.port: must be a whole number (got 022)"),
        ("ssh: {port: ''}", 'ssh.port: must be a whole number (got "")'),
        (f"ssh: {{port: {'9' * 5000}}}", f"ssh.port: must be a whole number (got {'9' * 60}…)"),
        (
            "ssh: {user: -oProxyCommand=x}",
            "ssh.user: must be a user name without spaces, not beginning with `-` (got -oProxyCommand=x)",
        ),
        ("ssh: {connect_timeout: 0}", "ssh.connect_timeout: must be 1..3600 (got 0)"),
        (
            "ssh: {connect_timeout_s: 5}",
            "ssh: unknown key `connect_timeout_s`; did you mean `connect_timeout`?",
        ),
        ("llama: {bin-dir: /x}", "llama: unknown key `bin-dir`; did you mean `bin_dir`?"),
        (
            "llama: {bin_dir: bin}",
            "llama.bin_dir: must be an absolute path, or begin with `~/`, on one line (got bin)",
        ),
        (
            "llama: {build: master}",
            (
                "llama.build: must be a release tag such as b11434, a commit of 7 to 40 digits "
                "0-9 a-f, or a version such as 0.6.0 (got master)"
            ),
        ),
        ("rpc: {devices: CUDA0}", "rpc.devices: must be a list (got CUDA0)"),
        (
            "rpc: {devices: ['CUDA0,CUDA1']}",
            "rpc.devices[0]: must be a device as llama.cpp lists it, such as CUDA0 (got CUDA0,CUDA1)",
        ),
        (
            "rpc: {devices: [A, B, A]}",
            "rpc.devices: must name each device once; `A` stands there again (got a list)",
        ),
        (
            "rpc: {interface: eth0 eth1}",
            "rpc.interface: must be the name of a network interface such as eth0 or usb4 (got eth0 eth1)",
        ),
        ("rpc: {threads: 0}", "rpc.threads: must be 1..2147483647 (got 0)"),
        ("memory: {limit_mib: -1}", "memory.limit_mib: must be 1..2147483647 (got -1)"),
        ("speed: {bandwidth_gb_s: fast}", "speed.bandwidth_gb_s: must be a number (got fast)"),
        ("speed: {bandwidth_gb_s: [1]}", "speed.bandwidth_gb_s: must be a number (got a list)"),
        ("speed: {bandwidth_gb_s: 1e999}", "speed.bandwidth_gb_s: must be a number above 0 (got 1e999)"),
        ("speed: {bandwidth_gb_s: .nan}", "speed.bandwidth_gb_s: must be a number (got .nan)"),
        (
            "host: -oProxyCommand=x",
            "host: must not begin with `-`: ssh would take it for an option (got -oProxyCommand=x)",
        ),
        ("host: 'a b'", "host: must be a host name or an address, without spaces (got a b)"),
        (
            "host: ops@box",
            "host: must be the host alone; the user has a key of its own, `ssh.user` (got ops@box)",
        ),
        (
            "host: 'box:22'",
            "host: must be a host name or an address alone, without a port or a path (got box:22)",
        ),
    ],
)
def test_a_wrong_value_is_told_in_plain_words(keys: str, fault: str) -> None:
    assert node_fault(keys) == fault


@pytest.mark.parametrize("name", ["A", "-a", "a_b", "a.b", "a b", "ä", "a" * 64])
def test_a_node_name_is_lower_case_letters_digits_and_dashes(name: str) -> None:
    assert "1 to 63 of a-z, 0-9 and `-`" in faults(HEAD + f"  - {{name: {name}, role: head}}\n")[0]


def test_a_cluster_name_has_at_most_32_characters() -> None:
    assert parse(ONE.replace("cluster: c", f"cluster: {'c' * 32}")).cluster == "c" * 32
    assert "must be 1 to 32 of" in faults(ONE.replace("cluster: c", f"cluster: {'c' * 33}"))[0]


@pytest.mark.parametrize(
    "build", ["b11434", "11434", "7e4c0a9", "1234567", "b10217-ddd4ec142", "0.6.0", "v0.1.0-dev"]
)
def test_a_build_is_pinned_by_tag_commit_or_version(build: str) -> None:
    assert parse(ONE.replace("role: head", f"role: head, llama: {{build: {build}}}")).head.llama.build == build


@pytest.mark.parametrize("address", ["10.1.2.3", "172.31.0.1", "192.168.0.9", "100.64.0.1", "169.254.7.7"])
def test_private_tailscale_and_link_local_addresses_may_carry_rpc(address: str) -> None:
    text = ONE + f"  - {{name: w, role: worker, rpc: {{address: {address}}}}}\n"
    assert parse(text).workers[0].rpc.address == address


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("0.0.0.0", "would listen on every network"),
        ("8.8.8.8", "must be a private address"),
        ("172.32.0.1", "must be a private address"),
        ("100.128.0.1", "must be a private address"),
        ("255.255.255.255", "must be a private address"),
        ("224.0.0.1", "must not be a multicast address"),
        ("'::'", "llama.cpp's RPC can't use IPv6"),
        ("'::1'", "llama.cpp's RPC can't use IPv6"),
        ("'::ffff:10.0.0.1'", "llama.cpp's RPC can't use IPv6"),
        ("'fe80::1%eth0'", "llama.cpp's RPC can't use IPv6"),
        ("worker.lan", "llama.cpp's RPC takes no names"),
        ("10.1", "must be an IPv4 address such as 10.0.0.5"),
        ("010.0.0.1", "must be an IPv4 address such as 10.0.0.5"),
        ("'10.0.0.1:50052'", "must be an IPv4 address such as 10.0.0.5"),
        ("''", "must not be empty"),
    ],
)
def test_rpc_addresses_that_are_public_or_no_ipv4_are_refused(address: str, reason: str) -> None:
    assert reason in node_fault(f"rpc: {{address: {address}}}")


@pytest.mark.parametrize(
    ("network", "reason"),
    [
        ("10.0.0.0", "such as 10.0.0.0/24"),
        ("10.0.0.0/33", "such as 10.0.0.0/24"),
        ("lan", "such as 10.0.0.0/24"),
        ("'fd00::/8'", "such as 10.0.0.0/24"),
        ("[10.0.0.0/24]", "such as 10.0.0.0/24"),
        ("10.0.0.7/24", "must be the network, not a host in it: 10.0.0.0/24"),
        ("0.0.0.0/0", "must be a private network"),
        ("10.0.0.0/7", "must be a private network"),
        ("8.8.8.0/24", "must be a private network"),
        ("127.0.0.0/8", "must be a private network"),
    ],
)
def test_the_network_must_be_private_ipv4(network: str, reason: str) -> None:
    found = faults(ONE.replace("10.0.0.0/24", network) + "  - {name: w, role: worker}\n")
    assert len(found) == 1
    assert found[0].startswith("i.yaml:3:10: network: ")
    assert reason in found[0]


def test_loopback_is_for_workers_on_the_heads_own_machine() -> None:
    worker = "role: worker, rpc: {address: 127.0.0.1}"
    both_local = f"  - {{name: h, role: head, connection: local}}\n  - {{name: w, connection: local, {worker}}}\n"
    same_host = f"  - {{name: h, role: head, host: BOX}}\n  - {{name: w, host: box, {worker}}}\n"
    elsewhere = f"  - {{name: h, role: head, host: box}}\n  - {{name: w, host: other, {worker}}}\n"
    other_port = (
        f"  - {{name: h, role: head, host: box}}\n  - {{name: w, host: box, ssh: {{port: 2222}}, {worker}}}\n"
    )
    assert parse(HEAD + both_local).workers
    assert parse(HEAD + same_host).workers
    for nodes in (elsewhere, other_port):
        assert "127.0.0.1 can be reached only on the head's own machine" in faults(HEAD + nodes)[0]


def test_there_is_exactly_one_head() -> None:
    none = faults(HEAD + "  - {name: a, role: worker}\n")
    two = faults(HEAD + "  - {name: a, role: head}\n  - {name: b, role: head}\n")
    assert none == ["i.yaml:5:3: nodes: no node is the head; give one of them `role: head`"]
    assert two == [
        "i.yaml:6:21: nodes[1].role: only one node can be the head, and nodes[0] is; make this one a worker"
    ]


def test_no_head_is_missed_where_a_role_is_wrong_anyway() -> None:
    found = faults(HEAD + "  - {name: a, role: haed}\n  - {name: b, role: worker}\n")
    assert found == ["i.yaml:5:21: nodes[0].role: must be one of head, worker (got haed)"]


@pytest.mark.parametrize("nodes", ["nodes: []", "nodes: {}", "nodes: x", "nodes:"])
def test_nodes_must_be_a_list_with_something_in_it(nodes: str) -> None:
    found = faults(f"version: 1\ncluster: c\n{nodes}\n")
    assert len(found) == 1
    assert found[0].startswith("i.yaml:3:")


def test_a_head_alone_needs_no_network() -> None:
    assert parse("version: 1\ncluster: c\nnodes: [{name: h, role: head}]\n").workers == ()


def test_a_worker_without_any_address_is_told_the_three_ways() -> None:
    text = ONE.replace("network: 10.0.0.0/24\n", "") + "  - {name: w, role: worker}\n"
    assert faults(text) == [
        (
            "i.yaml:5:5: nodes[1]: no address for RPC is known; set `network` for all nodes, "
            "or `rpc.address` or `rpc.interface` for this one"
        )
    ]
    for keys in ("address: 10.0.0.1", "interface: usb4"):
        assert parse(text.replace("role: worker", f"role: worker, rpc: {{{keys}}}")).workers


@pytest.mark.parametrize(
    ("first", "second", "clash"),
    [
        ("host: a", "host: a", True),
        ("host: a", "host: A, rpc: {port: 50052}", True),
        ("host: a", "host: a, rpc: {port: 50053}", False),
        ("host: a", "host: b", False),
        ("connection: local", "connection: local, host: b", True),
        ("host: a, rpc: {address: 10.0.0.1}", "host: b, rpc: {address: 10.0.0.1}", True),
        ("host: a, rpc: {address: 10.0.0.1}", "host: a, rpc: {address: 10.0.0.2}", False),
        ("host: a, rpc: {address: 10.0.0.1}", "host: a", True),
        ("host: a, ssh: {port: 1}", "host: a, ssh: {port: 2}", False),
    ],
)
def test_two_workers_never_share_an_rpc_endpoint(first: str, second: str, clash: bool) -> None:
    text = ONE + f"  - {{name: w1, role: worker, {first}}}\n  - {{name: w2, role: worker, {second}}}\n"
    if clash:
        assert "`w1` listens on port 50052 there already; choose another port" in faults(text)[0]
    else:
        assert len(parse(text).workers) == 2


def test_the_ports_of_a_heads_unused_rpc_section_clash_with_nothing() -> None:
    text = HEAD + "  - {name: h, role: head, host: a}\n  - {name: w, role: worker, host: a}\n"
    assert parse(text).workers


def test_sixteen_workers_are_the_limit_of_llama_cpp() -> None:
    workers = [f"  - {{name: w{n}, role: worker}}\n" for n in range(17)]
    assert len(parse(ONE + "".join(workers[:16])).workers) == 16
    assert faults(ONE + "".join(workers)) == [
        "i.yaml:5:3: nodes: must have at most 16 workers, as llama.cpp takes no more (got 17)"
    ]


def test_serve_only_makes_sense_for_a_head_with_workers_only() -> None:
    assert "only the head can be `serve_only`" in node_fault("serve_only: true")
    alone = faults(ONE.replace("role: head", "role: head, serve_only: true"))
    assert "a head without workers can't be `serve_only`" in alone[0]


def test_variables_that_would_undo_a_plan_are_refused_once_wherever_they_stand() -> None:
    told = node_fault("env: {GGML_X: 1, LLAMA_ARG_CTX_SIZE: 9}")
    assert told == "env.LLAMA_ARG_CTX_SIZE: `LLAMA_ARG_CTX_SIZE` must not be set: `context` decides it"
    common = ONE.replace("nodes:", "defaults: {env: {LLAMA_ARG_NO_KV_OFFLOAD: 1}}\nnodes:")
    (fault,) = faults(common + "  - {name: w, role: worker}\n")
    assert fault.startswith("i.yaml:4:18: nodes[0].env.LLAMA_ARG_NO_KV_OFFLOAD: ")
    assert "moves the KV cache" in fault
    assert parse(ONE.replace("role: head", "role: head, env: {LLAMA_API_KEY: k, GGML_X: 1}")).head.env


def test_rules_between_nodes_are_told_beside_faults_within_them() -> None:
    found = faults(HEAD + "  - {name: h, role: head, backend: x}\n  - {name: h, role: head}\n")
    assert ["backend" in found[0], "name" in found[1], "role" in found[2]] == [True, True, True]


def test_values_are_shown_harmless_and_short() -> None:
    assert node_fault('backend: "\\e[31mred\\u202e\\n"').endswith(r'(got "\x1b[31mred\u202e\n")')
    assert node_fault(f"backend: {'x' * 500}").endswith(f"(got {'x' * 60}…)")
