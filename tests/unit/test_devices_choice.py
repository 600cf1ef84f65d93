"""Each piece of memory is counted once, phantoms are dropped with a reason, and real cards stay."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.llama.backends import BACKENDS, device_backend
from clusterctl.llama.device_choice import missing_backend_problem, usable_devices
from clusterctl.model import Device, Severity
from tests.unit.sample_expectations import WITH_DEVICES, expected_devices, expected_kept

RTX = "NVIDIA GeForce RTX 3090"
RX = "AMD Radeon RX 6800 XT"
LLVMPIPE = "llvmpipe (LLVM 15.0.6, 256 bits)"


def card(name: str, description: str) -> Device:
    return Device(name, description, 16384, 16000)


def kept_names(backend: str | None, *devices: Device) -> list[str]:
    return [device.name for device in usable_devices(devices, backend)[0]]


@pytest.mark.parametrize("name", WITH_DEVICES)
def test_of_every_sample_the_real_devices_stay(name: str) -> None:
    kept, _ = usable_devices(expected_devices(name) or (), None)
    assert tuple(device.name for device in kept) == expected_kept(name)


def test_two_identical_cards_are_two_cards() -> None:
    assert kept_names("cuda", card("CUDA0", RTX), card("CUDA1", RTX)) == ["CUDA0", "CUDA1"]
    assert kept_names("sycl", card("SYCL0", "Intel Arc"), card("SYCL1", "Intel Arc")) == ["SYCL0", "SYCL1"]


def test_cards_of_two_vendors_in_one_machine_both_stay() -> None:
    assert kept_names("vulkan", card("Vulkan0", RTX), card("Vulkan1", RX)) == ["Vulkan0", "Vulkan1"]
    assert kept_names("cuda", card("CUDA0", RTX), card("ROCm0", RX)) == ["CUDA0", "ROCm0"]
    assert kept_names("cuda", card("CUDA0", RTX), card("Vulkan0", RTX), card("Vulkan1", RX)) == [
        "CUDA0",
        "Vulkan1",
    ]


@pytest.mark.parametrize(
    ("backend", "expected"), [(None, ["CUDA0"]), ("cuda", ["CUDA0"]), ("vulkan", ["Vulkan0"])]
)
def test_a_card_that_two_backends_list_counts_once_for_the_backend_of_the_inventory(
    backend: str | None, expected: list[str]
) -> None:
    assert kept_names(backend, card("Vulkan0", RTX), card("CUDA0", RTX)) == expected


def test_a_card_that_two_backends_name_differently_counts_once() -> None:
    rocm, vulkan = (
        card("ROCm0", "AMD Radeon Graphics"),
        card("Vulkan0", "Radeon 8060S Graphics (RADV GFX1151)"),
    )
    assert kept_names("rocm", rocm, vulkan) == ["ROCm0"]
    assert kept_names("vulkan", rocm, vulkan) == ["Vulkan0"]
    assert kept_names(None, card("CUDA0", "Orin"), card("Vulkan0", "NVIDIA Tegra Orin (nvgpu)")) == ["CUDA0"]


def test_virtual_metal_devices_count_once() -> None:
    devices = [card(f"MTL{index}", "Apple M2 Ultra") for index in range(4)]
    assert kept_names("metal", *devices) == ["MTL0"]


def test_software_and_pass_through_drivers_are_dropped_beside_a_real_card() -> None:
    dozen = card("Vulkan1", f"Microsoft Direct3D12 ({RX})")
    assert kept_names("vulkan", card("Vulkan0", RX), dozen, card("Vulkan2", LLVMPIPE)) == ["Vulkan0"]
    assert kept_names("vulkan", card("Vulkan0", "SwiftShader Device"), card("Vulkan1", RTX)) == ["Vulkan1"]


def test_a_software_renderer_alone_stays() -> None:
    assert kept_names("vulkan", card("Vulkan0", LLVMPIPE)) == ["Vulkan0"]
    assert kept_names("vulkan", card("Vulkan0", LLVMPIPE), card("CPU", "AMD EPYC")) == ["Vulkan0"]


def test_the_cpu_stays_alone_or_when_the_inventory_asks_for_it() -> None:
    assert kept_names(None, card("CPU", "AMD EPYC")) == ["CPU"]
    assert kept_names("cpu", card("CUDA0", RTX), card("CPU", "AMD EPYC")) == ["CPU"]
    assert kept_names("cuda", card("CUDA0", RTX), card("CPU", "AMD EPYC")) == ["CUDA0"]
    assert kept_names(None, card("BLAS", "Accelerate"), card("CPU", "Intel Xeon")) == ["CPU"]


def test_a_card_that_does_not_tell_its_memory_stays() -> None:
    assert kept_names("sycl", Device("SYCL0", "Intel Arc", None, None)) == ["SYCL0"]


def test_every_dropped_device_has_its_reason() -> None:
    devices = (card("MTL0", "Apple M3 Max"), card("COREML0", "Apple Silicon NPU"), card("BLAS", "Accelerate"))
    _, dropped = usable_devices((*devices, card("MUSA0", "MTT S80"), card("RPC0", "10.0.0.2:50052")), "metal")
    assert {device.name: reason for device, reason in dropped} == {
        "COREML0": "repeats the memory of the Metal device",
        "BLAS": "computes in the host's memory and holds no layers",
        "MUSA0": "is of a backend that clusterctl does not know",
        "RPC0": "is a device of another node",
    }


DEVICES = st.lists(
    st.builds(
        card,
        st.sampled_from(
            ("CUDA0", "CUDA1", "ROCm0", "Vulkan0", "Vulkan1", "MTL0", "MTL1", "CPU", "BLAS", "X9", "")
        ),
        st.sampled_from((RTX, RX, LLVMPIPE, f"Microsoft Direct3D12 ({RX})", "Apple M3", "Orin", "")),
    ),
    unique_by=lambda device: device.name,
)


@given(DEVICES, st.none() | st.sampled_from(tuple(BACKENDS)))
def test_every_device_is_kept_or_dropped_and_no_choice_is_empty_without_need(
    devices: list[Device], backend: str | None
) -> None:
    kept, dropped = usable_devices(devices, backend)
    assert sorted(map(str, devices)) == sorted(map(str, (*kept, *(device for device, _ in dropped))))
    assert usable_devices(kept, backend) == (kept, ())
    known = [device for device in devices if device_backend(device.name) is not None]
    assert bool(kept) is bool(known) or backend == "cpu"


@pytest.mark.parametrize(
    ("name", "backend"),
    [
        ("CUDA0", "cuda"),
        ("ROCm1", "rocm"),
        ("Vulkan0", "vulkan"),
        ("VULKAN0", "vulkan"),
        ("MTL0", "metal"),
        ("Metal", "metal"),
        ("SYCL0", "sycl"),
        ("CPU", "cpu"),
        ("BLAS", None),
        ("RPC0", None),
        ("RPC[10.0.0.2:50052]", None),
        ("COREML0", None),
        ("", None),
    ],
)
def test_the_device_name_tells_the_backend(name: str, backend: str | None) -> None:
    assert device_backend(name) == backend


@pytest.mark.parametrize("backend", ["cuda", "rocm", "metal", "sycl", "vulkan"])
def test_a_promised_backend_without_a_device_is_an_error_with_its_likely_causes(backend: str) -> None:
    for devices in ((), (card("CPU", "AMD EPYC"),)):
        problem = missing_backend_problem(backend, devices)
        assert problem is not None
        assert (problem.code, problem.severity) == ("backend-missing", Severity.ERROR)
        assert backend in problem.message
        assert all(need in problem.hint for need in BACKENDS[backend].needs)


def test_a_device_of_another_backend_is_no_substitute() -> None:
    problem = missing_backend_problem("rocm", (card("Vulkan0", RX),))
    assert problem is not None
    assert problem.message == "the inventory says backend rocm, but the devices are: Vulkan0"
    assert "/dev/kfd" in problem.hint


@pytest.mark.parametrize("backend", tuple(BACKENDS))
def test_without_a_listing_no_backend_is_confirmed(backend: str) -> None:
    problem = missing_backend_problem(backend, None)
    assert problem is not None
    assert problem.severity is Severity.ERROR


def test_a_promised_backend_that_is_there_is_no_problem() -> None:
    assert missing_backend_problem("rocm", (card("ROCm0", "AMD Radeon Graphics"),)) is None
    assert missing_backend_problem("cpu", ()) is None
    assert missing_backend_problem("vulkan", (card("Vulkan0", LLVMPIPE), card("Vulkan1", RX))) is None


def test_a_vulkan_node_with_a_software_renderer_only_is_an_error() -> None:
    problem = missing_backend_problem("vulkan", (card("Vulkan0", LLVMPIPE),))
    assert problem is not None
    assert (problem.code, problem.severity) == ("backend-in-software", Severity.ERROR)
