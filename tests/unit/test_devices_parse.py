"""Device rows are found in any listing of llama.cpp, and never made up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.llama.devices import budget_mib, memory_problem, parse_devices
from clusterctl.model import Device, Severity
from tests.unit.sample_expectations import NAMES, WITH_DEVICES, expected_devices, sample

NOISE = st.sampled_from(
    (
        "ggml_backend_cuda_get_available_uma_memory: final available_memory_kb: 127697544",
        "ggml_cuda_init: found 2 CUDA devices (Total VRAM: 35936 MiB):",
        "  Device 0: NVIDIA GeForce RTX 3080 Ti, compute capability 8.6, VMM: yes, VRAM: 11909 MiB",
        "llama_params_fit_impl:   - CUDA0 (NVIDIA RTX 4090):  24080 total,  19875 used",
        "| memory breakdown [MiB] |  - RPC0 (w:50052)  |  8191 =  6243 + ( 8130 = 686 + 6656 + 788) |",
        "  transport      : TCP",
        "No devices found",
        "",
    )
)


@pytest.mark.parametrize("name", NAMES)
def test_every_sample_holds_the_devices_that_a_reader_finds(name: str) -> None:
    assert parse_devices(sample(name)) == expected_devices(name)


@pytest.mark.parametrize(
    ("line", "device"),
    [
        (
            "  RPC0: 10.99.0.2:50052 (24105 MiB, 24105 MiB free)",
            Device("RPC0", "10.99.0.2:50052", 24105, 24105),
        ),
        (
            "  RPC[10.0.0.2:50052]: RPC[10.0.0.2:50052] (8191 MiB, 6243 MiB free)",
            Device("RPC[10.0.0.2:50052]", "RPC[10.0.0.2:50052]", 8191, 6243),
        ),
        (
            "0.00.126.784 I   - SYCL0   : Intel(R) Arc(TM) Graphics (29469 MiB, 29000 MiB free)",
            Device("SYCL0", "Intel(R) Arc(TM) Graphics", 29469, 29000),
        ),
        (
            "Nov 30 02:25:11 strix1 rpc-server[123]:   ROCm0: AMD Radeon Graphics (120000 MiB, 9 MiB free)",
            Device("ROCm0", "AMD Radeon Graphics", 120000, 9),
        ),
        (
            "main:   - Vulkan0 : AMD Radeon RX 6600 (8176 MiB, 6924 MiB free)",
            Device("Vulkan0", "AMD Radeon RX 6600", 8176, 6924),
        ),
        (
            "worker1  |   CUDA0: NVIDIA GB10 (124609 MiB, 121444 MiB free)",
            Device("CUDA0", "NVIDIA GB10", 124609, 121444),
        ),
        (
            "  Vulkan1: Microsoft Direct3D12 (AMD Radeon RX 6800 XT) (16368 MiB, 16368 MiB free)",
            Device("Vulkan1", "Microsoft Direct3D12 (AMD Radeon RX 6800 XT)", 16368, 16368),
        ),
        ("CUDA0: Odd - CUDA1: name (8 MiB, 8 MiB free)", Device("CUDA0", "Odd - CUDA1: name", 8, 8)),
        ("  CUDA0: NVIDIA (8123 MiB, 0 MiB free)", Device("CUDA0", "NVIDIA", 8123, 0)),
        ("  BLAS: Accelerate (0 MiB, 0 MiB free)", Device("BLAS", "Accelerate", None, None)),
        ("  SYCL0: Arc (0 MiB, 512 MiB free)", Device("SYCL0", "Arc", None, 512)),
        ("  RPC0: w:50052 (8191 MiB, 17592186038233 MiB free)", Device("RPC0", "w:50052", 8191, None)),
        ("  RPC0: w:50052 (17592186038233 MiB, 9 MiB free)", Device("RPC0", "w:50052", None, 9)),
    ],
)
def test_a_row_is_read_behind_any_log_mark(line: str, device: Device) -> None:
    assert parse_devices(line) == (device,)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "bash: line 1: llama-server: command not found",
        "error: invalid argument: -rpc",
        "available devices:\nNo devices found",
        "Available devices:\n  CUDA0: NVIDIA GeForce RTX 3080 Ti (11909 MiB, 116",
        "Available devices:\n  CU",
        "Devices:\n",
    ],
)
def test_no_listing_is_not_an_empty_listing(text: str) -> None:
    assert parse_devices(text) is None


@pytest.mark.parametrize("text", ["Available devices:\n", "Available devices:\r\n  (none)\r\n"])
def test_an_empty_listing_is_a_machine_without_accelerators(text: str) -> None:
    assert parse_devices(text) == ()


def test_of_two_rows_with_one_name_the_last_counts() -> None:
    rows = "  CUDA0: NVIDIA (8123 MiB, 8000 MiB free)\n  CUDA0: NVIDIA (8123 MiB, 7043 MiB free)"
    assert parse_devices(rows) == (Device("CUDA0", "NVIDIA", 8123, 7043),)


@given(
    st.sampled_from([name for name in WITH_DEVICES if not name.startswith("banner_") and expected_devices(name)]),
    st.lists(st.tuples(st.integers(0, 20), NOISE)),
    st.sampled_from(("\n", "\r\n")),
    st.sampled_from(("{}", "\x1b[36m{}\x1b[0m")),
)
def test_noise_between_rows_changes_nothing(
    name: str, noise: list[tuple[int, str]], line_end: str, colour: str
) -> None:
    lines = [colour.format(line) for line in sample(name).splitlines()]
    for position, line in noise:
        lines.insert(position, line)
    assert parse_devices(line_end.join(lines)) == expected_devices(name)


@given(st.sampled_from(NAMES), st.integers(min_value=0))
def test_a_cut_listing_names_no_device_that_the_whole_does_not(name: str, end: int) -> None:
    text = sample(name)
    whole = {device.name for device in parse_devices(text) or ()}
    assert {device.name for device in parse_devices(text[: end % (len(text) + 1)]) or ()} <= whole


@given(st.text() | st.text("CUDA0: -[]|()MiB, 9free\n"))
def test_any_text_is_read_without_a_crash(text: str) -> None:
    for device in parse_devices(text) or ():
        assert device.name
        assert device.total_mib is None or device.total_mib > 0


@pytest.mark.parametrize(
    ("total_mib", "free_mib", "reserve_mib", "limit_mib", "expected"),
    [
        (24154, 23210, 1024, None, 22186),
        (120000, 124704, 4096, None, 115904),
        (24154, 23210, 1024, 8000, 8000),
        (24154, 6000, 1024, 8000, 4976),
        (24154, 512, 1024, None, 0),
        (None, None, 1024, None, None),
        (None, 23210, 1024, None, None),
        (24154, None, 1024, None, None),
        (None, None, 1024, 98304, 98304),
        (24154, 23210, 0, 0, 0),
    ],
)
def test_the_budget_is_the_smaller_of_free_and_total_less_the_reserve(
    total_mib: int | None, free_mib: int | None, reserve_mib: int, limit_mib: int | None, expected: int | None
) -> None:
    assert budget_mib(Device("CUDA0", "card", total_mib, free_mib), reserve_mib, limit_mib) == expected


@given(
    st.none() | st.integers(0, 10**6),
    st.none() | st.integers(0, 10**6),
    st.integers(0, 10**6),
    st.integers(0, 10**6),
)
def test_the_budget_never_exceeds_the_limit(
    total_mib: int | None, free_mib: int | None, reserve_mib: int, limit_mib: int
) -> None:
    budget = budget_mib(Device("CUDA0", "card", total_mib, free_mib), reserve_mib, limit_mib)
    assert budget is not None
    assert 0 <= budget <= limit_mib


@pytest.mark.parametrize(
    ("device", "code", "severity"),
    [
        (Device("SYCL0", "Arc", 29469, 29469), "free-memory-guessed", Severity.NOTE),
        (Device("Vulkan0", "Vega II Duo", 32752, 32752), "free-memory-guessed", Severity.NOTE),
        (Device("SYCL0", "Arc", None, None), "memory-unknown", Severity.WARNING),
        (Device("CUDA0", "A800", None, 80614), "memory-unknown", Severity.WARNING),
    ],
)
def test_doubtful_memory_is_told(device: Device, code: str, severity: Severity) -> None:
    problem = memory_problem(device)
    assert problem is not None
    assert (problem.code, problem.severity) == (code, severity)
    assert device.name in problem.message


@pytest.mark.parametrize(
    "device",
    [
        Device("SYCL0", "Arc", 29469, 29000),
        Device("CUDA0", "GB10", 124609, 124609),
        Device("CPU", "EPYC", 24105, 24105),
        Device("ROCm0", "Radeon", 120000, 124704),
        Device("MUSA0", "MTT S80", 16384, 16384),
    ],
)
def test_plausible_memory_is_not_doubted(device: Device) -> None:
    assert memory_problem(device) is None
