"""Which files of a release a node gets; the names are those of real releases."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.errors import InstallFailed
from clusterctl.install.assets import Asset, choose_assets, parse_release
from tests.unit.installing import look, site

HASH = "a" * 64
NAMES = {
    "b8757": ("ubuntu-x64", "ubuntu-arm64", "ubuntu-vulkan-x64", "ubuntu-vulkan-arm64", "ubuntu-rocm-7.2-x64"),
    "b10621": (
        "macos-arm64",
        "macos-x64",
        "ubuntu-arm64",
        "ubuntu-rocm-7.14-x64",
        "ubuntu-vulkan-arm64",
        "ubuntu-vulkan-x64",
        "ubuntu-x64",
    ),
    "b11433": ("macos-arm64", "ubuntu-cuda-12.8-x64", "ubuntu-cuda-13.4-x64", "ubuntu-vulkan-x64", "ubuntu-x64"),
}


def asset(name: str, sha256: str | None = HASH) -> Asset:
    return Asset(name, f"https://example.org/{name}", sha256)


def release(tag: str) -> list[Asset]:
    programs = [f"llama-{tag}-bin-{platform}.tar.gz" for platform in NAMES[tag]]
    runtimes = [f"cudart-{name}" for name in programs if "cuda" in name]
    others = [f"llama-{tag}-bin-win-cuda-12.4-x64.zip", f"llama-{tag}-ui.tar.gz", f"llama-{tag}-xcframework.zip"]
    return [asset(name) for name in (*others, *runtimes, *reversed(programs))]


@pytest.mark.parametrize(
    ("tag", "system", "arch", "backend", "platform"),
    [
        ("b8757", "linux", "x86_64", "cpu", "ubuntu-x64"),
        ("b8757", "linux", "aarch64", "vulkan", "ubuntu-vulkan-arm64"),
        ("b8757", "linux", "x86_64", "rocm", "ubuntu-rocm-7.2-x64"),
        ("b10621", "linux", "x86_64", "rocm", "ubuntu-rocm-7.14-x64"),
        ("b10621", "linux", "aarch64", "cpu", "ubuntu-arm64"),
        ("b10621", "macos", "arm64", "metal", "macos-arm64"),
        ("b10621", "macos", "x86_64", "cpu", "macos-x64"),
        ("b11433", "linux", "x86_64", "vulkan", "ubuntu-vulkan-x64"),
    ],
)
def test_a_node_gets_the_file_of_its_system_and_backend(
    tag: str, system: str, arch: str, backend: str, platform: str
) -> None:
    chosen = choose_assets(tag, release(tag), site(backend), look(system, arch))
    assert [each.name for each in chosen] == [f"llama-{tag}-bin-{platform}.tar.gz"]


def test_cuda_comes_in_the_version_for_most_drivers_and_with_its_runtime() -> None:
    chosen = choose_assets("b11433", release("b11433"), site("cuda"), look())
    assert [each.name for each in chosen] == [
        "llama-b11433-bin-ubuntu-cuda-12.8-x64.tar.gz",
        "cudart-llama-b11433-bin-ubuntu-cuda-12.8-x64.tar.gz",
    ]


def test_versions_are_compared_as_numbers() -> None:
    names = [f"llama-b10800-bin-ubuntu-rocm-{version}-x64.tar.gz" for version in ("10.0", "7.14", "7.2")]
    assert choose_assets("b10800", [asset(name) for name in names], site("rocm"), look())[0].name == names[2]


@pytest.mark.parametrize(
    ("tag", "system", "arch", "backend"),
    [
        ("b8757", "linux", "x86_64", "cuda"),
        ("b10621", "macos", "x86_64", "metal"),
        ("b10621", "linux", "riscv64", "cpu"),
        ("b10621", "linux", "x86_64", "sycl"),
    ],
)
def test_what_a_release_does_not_have_is_said_with_the_other_ways(
    tag: str, system: str, arch: str, backend: str
) -> None:
    with pytest.raises(InstallFailed, match=f"{tag} has no file for {system} {arch} with {backend}") as caught:
        choose_assets(tag, release(tag), site(backend), look(system, arch))
    assert "--from source" in str(caught.value.hint)


def test_a_processor_beside_an_accelerator_needs_no_file_of_its_own() -> None:
    chosen = choose_assets("b10621", release("b10621"), site("cpu", "vulkan"), look())
    assert chosen[0].name == "llama-b10621-bin-ubuntu-vulkan-x64.tar.gz"


def test_two_accelerators_on_one_machine_are_in_no_file() -> None:
    with pytest.raises(InstallFailed, match="node0 and node1 share a machine"):
        choose_assets("b11433", release("b11433"), site("cuda", "vulkan"), look())


def test_a_file_whose_hash_is_not_published_is_refused() -> None:
    files = [asset("llama-b5000-bin-ubuntu-x64.zip", None)]
    with pytest.raises(InstallFailed, match="does not publish the sha256") as caught:
        choose_assets("b5000", files, site("cpu"), look())
    assert "--from archive" in str(caught.value.hint)


def test_a_release_is_read_as_github_lists_it() -> None:
    listed = {
        "name": "a.tar.gz",
        "browser_download_url": "https://x/a.tar.gz",
        "digest": f"sha256:{HASH}",
        "size": 3,
    }
    undigested = {"name": "b.zip", "browser_download_url": "https://x/b.zip", "digest": None}
    assert parse_release({"tag_name": "b1", "assets": [listed, undigested]}) == (
        Asset("a.tar.gz", "https://x/a.tar.gz", HASH),
        Asset("b.zip", "https://x/b.zip", None),
    )


values = st.recursive(
    st.none() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.sampled_from(["assets", "name", "digest"]) | st.text(), inner)
    ),
)


@given(values | st.fixed_dictionaries({"assets": values}) | st.fixed_dictionaries({"assets": st.lists(values)}))
def test_any_document_is_read(document: object) -> None:
    assert all(isinstance(each, Asset) for each in parse_release(document))
