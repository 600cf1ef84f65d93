"""Memory of cards and of the processes that hold it, read from what drivers say; and its return after `down`."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.cluster.node_memory import NodeMemory, parse_memory
from clusterctl.cluster.observation import parse_observation
from clusterctl.cluster.proof import missing_mib, others_grown
from clusterctl.llama.kernel_memory import parse_amd_cards, parse_device_memory
from clusterctl.llama.vendor_tools import CardMemory, ComputeApp
from clusterctl.model import MIB, Device, HostMemory
from clusterctl.remote.answer import Section
from tests.unit.sights import process

# Two open files of one client of an AMD card, as fdinfo of Linux 6.1 shows them, then one of another client.
FDINFO = """\
drm-driver:\tamdgpu
drm-client-id:\t42
drm-pdev:\t0000:c4:00.0
drm-memory-vram:\t1024 KiB
drm-memory-gtt: \t2 MiB
drm-memory-cpu: \t4096 KiB
drm-engine-gfx:\t5 ns
drm-driver:\tamdgpu
drm-client-id:\t42
drm-pdev:\t0000:c4:00.0
drm-memory-vram:\t1024 KiB
drm-memory-gtt: \t2 MiB
drm-driver:\txe
drm-client-id:\t43
drm-pdev:\t0000:03:00.0
drm-total-vram0:\t900 MiB
drm-resident-vram0:\t5 MiB
"""


def test_one_client_counts_once_however_many_files_it_has_open() -> None:
    assert parse_device_memory(FDINFO) == 1 + 2 + 5


def test_the_same_memory_told_by_two_drivers_counts_once() -> None:
    assert parse_device_memory(f"kfd {3 * MIB}\nkfd {4 * MIB}\n{FDINFO}") == 8
    assert parse_device_memory(f"kfd {30 * MIB}\n{FDINFO}") == 30


@pytest.mark.parametrize("text", ["", "drm-driver:\tnouveau\ndrm-engine-gfx:\t5 ns\n", "drm-memory-cpu:\t5 KiB\n"])
def test_where_no_driver_tells_nothing_is_known(text: str) -> None:
    assert parse_device_memory(text) is None


def test_a_card_that_holds_nothing_is_known_to_do_so() -> None:
    assert parse_device_memory("kfd 0\n") == 0


def test_amd_cards_are_read_in_bytes() -> None:
    assert parse_amd_cards(f"card1 {16384 * MIB} {1000 * MIB}\nrubbish\n") == (CardMemory("card1", 16384, 15384),)


@given(st.text(alphabet="drm-kfdvgtiesnyo:0123456789KMB \t\n"))
def test_text_of_any_kind_is_read_without_a_crash(text: str) -> None:
    held_mib = parse_device_memory(text)
    assert held_mib is None or held_mib >= 0
    assert isinstance(parse_amd_cards(text), tuple)


def test_a_process_holds_what_all_its_drivers_say_together() -> None:
    memory = parse_memory(
        {
            "memory": Section(0, "MemTotal: 2048 kB\nMemAvailable: 1024 kB\n"),
            "nvidia_cards": Section(0, "name, memory.total [MiB], memory.free [MiB]\nRTX, 24576 MiB, 4000 MiB\n"),
            "nvidia_programs": Section(0, "pid, process_name, used_gpu_memory [MiB]\n77, /opt/x, 500 MiB\n"),
            "amd_cards": Section(0, f"card1 {1024 * MIB} 0"),
            "device_memory:77": Section(0, f"kfd {100 * MIB}"),
            "device_memory:78": Section(0, ""),
        }
    )
    assert memory.host == HostMemory(2, 1)
    assert memory.cards == (CardMemory("RTX", 24576, 4000), CardMemory("card1", 1024, 1024))
    assert (memory.held_by(77), memory.held_by(78)) == (600, None)


def test_an_answer_of_a_node_without_drivers_knows_nothing_of_cards() -> None:
    memory = parse_memory({"memory": Section(0, ""), "amd_cards": Section(0, "")})
    assert memory == NodeMemory(HostMemory())
    assert memory.held_by(77) is None


@pytest.mark.parametrize("pid", ["", "x", "²", "-1"])
def test_what_no_process_holds_is_passed_over(pid: str) -> None:
    memory = parse_memory({"memory": Section(0, ""), f"device_memory:{pid}": Section(0, f"kfd {MIB}")})
    assert memory.held_mib == {}


def test_digits_of_other_scripts_are_no_memory() -> None:
    assert parse_device_memory("drm-driver: amdgpu\ndrm-resident-vram: ² KiB\n") is None


@pytest.mark.parametrize(
    ("text", "processor_s", "resident_mib", "is_suspended"),
    [
        ("S 12.5 2048", 12.5, 2.0, False),
        ("t 0.0 2048", 0.0, 2.0, True),
        ("Ss+ 1:02.50 1024", 62.5, 1.0, False),
        ("R 1:00:01 x", 3601.0, None, False),
        ("S odd", None, None, False),
    ],
)
def test_how_a_process_does_is_read_on_linux_and_macos(
    text: str, processor_s: float | None, resident_mib: float | None, is_suspended: bool
) -> None:
    system = Section(0, "Linux host x86_64\nroot\nboot\n1\n/root\n/bin")
    sections = {"system": system, "sockets": Section(0, ""), "vitals:left": Section(0, text)}
    vitals = parse_observation("left", sections).vitals["left"]
    assert (vitals.processor_s, vitals.resident_mib) == (processor_s, resident_mib)
    assert vitals.is_suspended is is_suspended


def device(free_mib: int | None, name: str = "CUDA0") -> Device:
    return Device(name, "", 24576, free_mib)


@pytest.mark.parametrize(
    ("free_mib", "missing"), [(24000, {}), (25000, {}), (23300, {}), (23000, {"CUDA0": 1000}), (None, {})]
)
def test_memory_is_missing_only_if_more_is_gone_than_comes_and_goes(
    free_mib: int | None, missing: dict[str, int]
) -> None:
    assert missing_mib({"CUDA0": 24000}, [device(free_mib), device(0, "CUDA1")]) == missing


def test_a_device_that_is_gone_from_the_list_is_not_judged() -> None:
    assert missing_mib({"CUDA0": 24000}, []) == {}


APPS = (
    ComputeApp(7, "python", 500),
    ComputeApp(7, "python", 400),
    ComputeApp(8, "[Not Found]", None),
    ComputeApp(200, "[Not Found]", 5000),
)


@pytest.mark.parametrize(
    ("before_mib", "grown"),
    [
        ({}, {"python (pid 7)": 900}),
        ({"7": 300, "8": 20}, {"python (pid 7)": 600}),
        ({"7": 900}, {}),
        ({"7": 1000}, {}),
        (None, {}),
    ],
)
def test_only_what_others_took_since_the_start_excuses_missing_memory(
    before_mib: dict[str, int] | None, grown: dict[str, int]
) -> None:
    own = process("left")
    own = replace(own, record=replace(own.record, held_before_mib=before_mib))
    assert others_grown(NodeMemory(HostMemory(), apps=APPS), own) == grown
