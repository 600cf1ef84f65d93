"""The vendors' tools are read for what they tell, and "N/A" is never zero."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.llama.vendor_tools import (
    CardMemory,
    ComputeApp,
    parse_compute_apps,
    parse_host_memory,
    parse_nvidia_memory,
)
from clusterctl.model import HostMemory
from tests.unit.sample_expectations import NAMES, sample

APPS = """pid, process_name, used_gpu_memory [MiB]
3536986, /opt/llama.cpp/bin/ggml-rpc-server, 10648 MiB
812, C:\\Program Files\\a, b.exe, [N/A]
77, [Insufficient Permissions], [Insufficient Permissions]
"""


@pytest.mark.parametrize("name", ["nvidia-smi_gb10_query_csv.txt", "nvidia-smi_gb10_memory_free_csv_2026-09.txt"])
def test_a_card_with_unified_memory_is_there_and_its_memory_is_unknown(name: str) -> None:
    assert parse_nvidia_memory(sample(name)) == (CardMemory("NVIDIA GPU", None, None),)


def test_columns_are_found_by_their_header() -> None:
    text = "memory.free [MiB], name, memory.total [MiB]\n23210 MiB, NVIDIA GeForce RTX 3090, 24576 MiB\n"
    assert parse_nvidia_memory(text) == (CardMemory("NVIDIA GeForce RTX 3090", 24576, 23210),)


@pytest.mark.parametrize(
    "text",
    [
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
        sample("nvidia-smi_gb10_table.txt"),
        "",
    ],
)
def test_a_failed_query_is_not_a_machine_without_cards(text: str) -> None:
    assert parse_nvidia_memory(text) is None


def test_a_query_that_finds_no_card_is_an_empty_list() -> None:
    assert parse_nvidia_memory("name, memory.total [MiB], memory.free [MiB]\n") == ()


def test_processes_on_the_card_are_read_from_table_and_csv() -> None:
    assert parse_compute_apps(sample("nvidia-smi_compute_apps_worker_and_strangers.txt")) == (
        ComputeApp(2109229, "/opt/speech/.venv/bin/python", 344),
        ComputeApp(2110020, "python3", 1108),
        ComputeApp(3536986, "./ggml-rpc-server", 10648),
    )
    assert parse_compute_apps(APPS) == (
        ComputeApp(3536986, "/opt/llama.cpp/bin/ggml-rpc-server", 10648),
        ComputeApp(812, "C:\\Program Files\\a, b.exe", None),
        ComputeApp(77, "[Insufficient Permissions]", None),
    )


def test_total_and_available_memory_are_read_from_meminfo() -> None:
    text = "MemTotal:       24684192 kB\nMemFree:        20000000 kB\nMemAvailable:   23552000 kB\n"
    assert parse_host_memory(text) == HostMemory(24105, 23000)


def test_what_the_narrowest_limit_of_a_cgroup_leaves_is_allowed() -> None:
    text = "MemTotal: 24684192 kB\nMemAvailable: 23552000 kB\n"
    limits = [9007199251694472, 24684193, 8192, 4096]  # the first two are larger than the memory
    lines = [f"CgroupAvailable: {limit} kB\n" for limit in limits]
    assert parse_host_memory(text + "".join(lines)) == HostMemory(24105, 23000, 4)
    assert parse_host_memory(text + "".join(lines[:2])) == HostMemory(24105, 23000, None)
    assert parse_host_memory(f"{text}CgroupAvailable: 0 kB\n").allowed_mib == 0


def test_a_kernel_without_available_memory_leaves_it_unknown() -> None:
    assert parse_host_memory("MemTotal:       24684192 kB\n") == HostMemory(24105, None)
    assert parse_host_memory("cat: /proc/meminfo: No such file or directory") == HostMemory(None, None)


def test_on_macos_pages_that_can_be_had_at_once_count_as_available() -> None:
    text = (
        "hw.memsize: 137438953472\nhw.pagesize: 16384\n"
        "Mach Virtual Memory Statistics: (page size of 16384 bytes)\n"
        "Pages free:                             1000000.\nPages active:                           3000000.\n"
        "Pages inactive:                          500000.\nPages speculative:                       100000.\n"
    )
    assert parse_host_memory(text) == HostMemory(131072, 25000)
    assert parse_host_memory(text.partition("Mach")[0]) == HostMemory(131072, None)


@given(st.text() | st.sampled_from(NAMES).map(sample))
def test_any_text_is_read_without_a_crash(text: str) -> None:
    host = parse_host_memory(text)
    sizes = [(host.total_mib, host.available_mib)]
    sizes += [(card.total_mib, card.free_mib) for card in parse_nvidia_memory(text) or ()]
    sizes += [(app.pid, app.used_mib) for app in parse_compute_apps(text)]
    assert all(size is None or size >= 0 for pair in sizes for size in pair)
