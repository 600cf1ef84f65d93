"""What compiling for a backend takes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.errors import InstallFailed
from clusterctl.install.needs import cmake_flags, gpu_targets
from clusterctl.install.site import Look
from clusterctl.install.table import builds
from clusterctl.llama.backends import BACKENDS
from clusterctl.model import Build
from tests.unit.installing import TOOLS, look, site

B11434 = Build(11434)
ROCM = look(gpu_targets=("gfx1151",), hip_compiler="/opt/rocm/llvm/bin")


@pytest.mark.parametrize(
    ("backend", "flags"),
    [
        ("cpu", set()),
        ("cuda", {"-DGGML_CUDA=ON"}),
        ("rocm", {"-DGGML_HIP=ON", "-DGPU_TARGETS=gfx1151", "-DCMAKE_HIP_COMPILER=/opt/rocm/llvm/bin/clang"}),
        ("vulkan", {"-DGGML_VULKAN=ON"}),
        ("metal", {"-DGGML_METAL=ON"}),
    ],
)
def test_every_backend_has_its_flags_and_rpc(backend: str, flags: set[str]) -> None:
    given_flags = set(cmake_flags(site(backend), ROCM, B11434))
    assert given_flags >= flags | {"-DGGML_RPC=ON", "-DCMAKE_BUILD_TYPE=Release"}
    others = {f"-D{flag}" for each in builds().backends.values() for flag in each.flags}
    assert given_flags & others <= flags


def test_two_backends_of_one_machine_go_into_one_build() -> None:
    assert {"-DGGML_CUDA=ON", "-DGGML_VULKAN=ON"} <= set(cmake_flags(site("vulkan", "cuda"), look(), B11434))


def test_programs_look_for_libraries_beside_them_on_each_system() -> None:
    assert "-DCMAKE_INSTALL_RPATH=$ORIGIN" in cmake_flags(site("cpu"), look(), B11434)
    assert "-DCMAKE_INSTALL_RPATH=@loader_path" in cmake_flags(site("metal"), look("macos", "arm64"), B11434)


@pytest.mark.parametrize(
    ("build", "number", "commit"),
    [
        (Build(11434), "-DLLAMA_BUILD_NUMBER=11434", "-DLLAMA_BUILD_COMMIT=b11434"),
        (Build(11434, "7e4c0a9"), "-DLLAMA_BUILD_NUMBER=11434", "-DLLAMA_BUILD_COMMIT=7e4c0a9"),
        (Build(commit="7e4c0a9"), None, "-DLLAMA_BUILD_COMMIT=7e4c0a9"),
    ],
)
def test_the_programs_are_told_which_build_they_are(build: Build, number: str | None, commit: str) -> None:
    flags = cmake_flags(site("cpu"), look(), build)
    assert commit in flags
    assert next((flag for flag in flags if "BUILD_NUMBER" in flag), None) == number


def test_all_missing_tools_are_named_at_once_with_where_they_come_from() -> None:
    with pytest.raises(InstallFailed) as caught:
        cmake_flags(site("cuda"), look(tools=TOOLS - {"cmake", "nvcc"}), B11434)
    assert "cmake, nvcc must be in PATH (/usr/bin:/bin)" in caught.value.message
    assert "NVIDIA's CUDA toolkit" in str(caught.value.hint)
    assert caught.value.node == "node0"


def test_tools_of_another_backend_are_not_asked_for() -> None:
    assert cmake_flags(site("cpu"), look(tools={"cmake", "c++", "make"}), B11434)


@pytest.mark.parametrize(
    ("version", "target"),
    [("11.5.1", "gfx1151"), ("10.3.0", "gfx1030"), ("9.0.10", "gfx90a"), ("12.0.1", "gfx1201")],
)
def test_what_the_environment_makes_rocm_believe_is_what_is_compiled_for(version: str, target: str) -> None:
    machine = site("rocm", env={"HSA_OVERRIDE_GFX_VERSION": version})
    assert gpu_targets(machine, look(gpu_targets=("gfx1103",))) == (target,)


def test_several_gpus_are_compiled_for_together() -> None:
    machine = look(gpu_targets=("gfx1030", "gfx1100"), hip_compiler="/opt/rocm/llvm/bin")
    assert "-DGPU_TARGETS=gfx1030;gfx1100" in cmake_flags(site("rocm"), machine, B11434)


@given(st.text())
def test_a_version_of_any_form_is_a_target_or_is_passed_over(version: str) -> None:
    plain = site("rocm")
    node = plain.nodes[0].model_copy(update={"env": {"HSA_OVERRIDE_GFX_VERSION": version}})
    targets = gpu_targets(replace(plain, nodes=(node,)), look())
    assert all(target.startswith("gfx") for target in targets)


@pytest.mark.parametrize(
    ("machine", "said"),
    [
        (look(hip_compiler="/opt/rocm/llvm/bin"), "rocminfo names no GPU"),
        (look(gpu_targets=("gfx1151",)), "hipconfig names no compiler"),
    ],
)
def test_rocm_without_a_gpu_or_a_compiler_is_refused(machine: Look, said: str) -> None:
    with pytest.raises(InstallFailed, match=said):
        cmake_flags(site("rocm"), machine, B11434)


def test_a_backend_that_is_not_told_is_never_guessed() -> None:
    with pytest.raises(InstallFailed, match="does not say which backend"):
        cmake_flags(site(None), look(), B11434)


def test_every_backend_can_be_compiled_or_is_refused_with_a_way_out() -> None:
    for backend in BACKENDS.keys() - builds().backends.keys():
        with pytest.raises(InstallFailed, match=backend) as caught:
            cmake_flags(site(backend), look(), B11434)
        assert "llama.bin_dir" in str(caught.value.hint)
