"""Builds are read from what programs print, whatever stands around it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.llama.build import parse_build
from clusterctl.model import Build
from tests.unit.sample_expectations import NAMES, SAMPLES, WITH_BUILD, expected_build, sample

BANNER_LINES = st.sampled_from(
    (
        "ggml_cuda_init: found 1 ROCm devices (Total VRAM: 126976 MiB):",
        "  Device 0: Radeon 8060S Graphics, gfx1151 (0x1151), VMM: no, Wave Size: 32, VRAM: 126976 MiB",
        "load_backend: loaded RPC backend from /opt/llama-b6989-bin-ubuntu-vulkan-x64/libggml-rpc.so",
        "ggml_vulkan: 0 = AMD Radeon Graphics (RADV GFX1151) (radv) | uma: 1 | warp size: 64",
        "NVIDIA driver version: 580 (abcdef1)",
        "OpenSSL library: 3.0.13 (build 9999, commit 1234abc)",
        "Starting RPC server v5.0.0",
        "bash: line 1: llama-server: command not found",
        "",
    )
)


@pytest.mark.parametrize("name", NAMES)
def test_every_sample_holds_the_build_that_a_reader_finds(name: str) -> None:
    assert parse_build(sample(name)) == expected_build(name)


def test_every_sample_of_a_version_or_a_listing_has_an_expectation() -> None:
    kinds = ("version_", "list-devices_", "banner_", "device-info_", "worker-devices_", "library-strings_")
    assert {path.name for path in SAMPLES.iterdir() if path.name.startswith(kinds)} <= set(NAMES)


@pytest.mark.parametrize(
    ("line", "build"),
    [
        ("version: 8763 (ff5ef8278)", Build(8763, "ff5ef8278")),
        ("version: 8763 (FF5EF8278)", Build(8763, "ff5ef8278")),
        ("version: 0.3.0 (build 10621)", Build(10621, None, "0.3.0")),
        ("version: 0.6.0-dev (build 11434, commit b11434)", Build(11434, None, "0.6.0-dev")),
        ("version: 0.6.0-dev (build 123456, commit b123456)", Build(123456, None, "0.6.0-dev")),
        ("version: 10621 (10621)", Build(10621)),
        ("version: 5882 (Debian)", Build(5882)),
        ("version: 9551 (unknown)", Build(9551)),
        ("build: 6989 (eeee367de) with cc 11.4.0 for x86_64-linux-gnu", Build(6989, "eeee367de")),
        ('{"build_info":"b10217-ddd4ec142","n_ctx":4096}', Build(10217, "ddd4ec142")),
        ('{"build_info": "b1-7e4c0a9"}', Build(None, "7e4c0a9")),
        ('{"build_info":"b11434-b11434"}', Build(11434)),
        ("worker1  | version: 9992 (6eddde06a)", Build(9992, "6eddde06a")),
        ("\x1b[1mversion: 9992 (6eddde06a)\x1b[0m", Build(9992, "6eddde06a")),
    ],
)
def test_a_line_that_names_a_build_is_read(line: str, build: Build) -> None:
    assert parse_build(line) == build


@pytest.mark.parametrize(
    "text",
    [
        "",
        "version: 0 (unknown)",
        "version: 1 (unknown)",
        "version: 8763",
        "version: 8763 (ff5ef8",
        "version: 0.1.0-dev (build 10433, commit 9b05",
        "version: 8763 (ff5ef8278-dirty)",
        "version: 8763 (ff5e)",
        '{"build_info":"b10217-ddd4',
        "NVIDIA driver version: 8763 (ff5ef8278)",
        "bash: line 1: llama-server: command not found",
        "error: unknown argument: --version\nUsage: ./ggml-rpc-server [options]",
        "load_backend: loaded RPC backend from /opt/b10217-ddd4ec142/libggml-rpc.so",
        "Starting RPC server v5.0.0",
        "version: 99999999999999999999 (ff5ef8278)",
        "version: ٨٧٦٣ (unknown)",
    ],
)
def test_text_that_names_no_build_is_unknown(text: str) -> None:
    assert parse_build(text) is None


def test_two_different_version_lines_are_no_build() -> None:
    assert parse_build("version: 8763 (ff5ef8278)\nversion: 9002 (457e2288c)") is None


def test_the_same_version_line_twice_is_one_build() -> None:
    assert parse_build("version: 8763 (ff5ef8278)\n" * 2) == Build(8763, "ff5ef8278")


@given(st.text())
def test_text_without_the_word_version_or_build_is_unknown(text: str) -> None:
    assert parse_build(re.sub("version|build|vendor|^b", "", text)) is None


@given(
    st.sampled_from(WITH_BUILD),
    st.lists(BANNER_LINES),
    st.lists(BANNER_LINES),
    st.sampled_from(("\n", "\r\n")),
    st.sampled_from(("{}", "\x1b[32m{}\x1b[0m", "\x1b[0m{}\x1b[K")),
)
def test_noise_around_a_build_changes_nothing(
    name: str, before: list[str], after: list[str], line_end: str, colour: str
) -> None:
    lines = [*before, *(colour.format(line) for line in sample(name).splitlines()), *after]
    assert parse_build(line_end.join(lines)) == expected_build(name)


@given(st.sampled_from(NAMES), st.integers(min_value=0), st.integers(min_value=0))
def test_a_cut_text_names_a_part_of_its_build_or_none(name: str, start: int, end: int) -> None:
    text, whole = sample(name), expected_build(name)
    part = parse_build(text[start % (len(text) + 1) : len(text) - end % (len(text) + 1)])
    if part is not None and whole is not None:
        assert part.number in (None, whole.number)
        assert part.commit is None or (whole.commit or "").startswith(part.commit)
