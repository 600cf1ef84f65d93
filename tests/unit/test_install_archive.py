"""Archives packed anew: what a node gets of a wheel, a zip or a tarball, and what it never gets."""

from __future__ import annotations

import hashlib
import random
import shutil
import tarfile
from pathlib import Path

import pytest

from clusterctl.errors import UsageError
from clusterctl.install.archive import PROGRAMS, SOURCE_TREE, pack
from tests.unit.installing import make_source, make_tar, make_zip

SERVER, WORKER = b"the server", b"the worker"


def packed(archives: list[Path], wanted: tuple[tuple[str, ...], ...] = PROGRAMS) -> dict[str, bytes | str]:
    """Names and contents of what is sent; a text is where a link leads."""
    folder = archives[0].parent
    package = pack(archives, wanted, folder / "package.tar.gz")
    assert package.size_bytes == package.path.stat().st_size
    assert package.sha256 == hashlib.sha256(package.path.read_bytes()).hexdigest()
    found: dict[str, bytes | str] = {}
    with tarfile.open(package.path) as tar:
        for entry in tar:
            content = tar.extractfile(entry) if entry.isfile() else None
            found[entry.name] = content.read() if content else entry.linkname
            assert entry.mode == 0o755
    return found


def test_of_a_wheel_only_the_folder_with_the_programs_is_sent_and_each_library_once(tmp_path: Path) -> None:
    wheel = make_zip(
        tmp_path / "build.whl",
        {
            "build/bin/llama-server": SERVER,
            "build/bin/ggml-rpc-server": WORKER,
            "build/bin/libggml.so": b"library",
            "build/bin/libggml.so.0": b"library",
            "build/__init__.py": b"",
            "build-1.dist-info/METADATA": b"Name: build",
        },
    )
    assert packed([wheel]) == {
        "llama-server": SERVER,
        "ggml-rpc-server": WORKER,
        "libggml.so": b"library",
        "libggml.so.0": "libggml.so",
    }


@pytest.mark.parametrize("worker", ["ggml-rpc-server", "rpc-server"])
def test_of_a_release_the_programs_and_their_links_are_sent(tmp_path: Path, worker: str) -> None:
    archive = make_tar(
        tmp_path / "release.tar.gz",
        {
            "./llama-b1/llama-server": SERVER,
            f"./llama-b1/{worker}": WORKER,
            "./llama-b1/libllama.so.0": b"library",
            "./llama-b1/libllama.so": "libllama.so.0",
        },
    )
    assert packed([archive]) == {
        "llama-server": SERVER,
        worker: WORKER,
        "libllama.so.0": b"library",
        "libllama.so": "libllama.so.0",
    }


def test_libraries_of_a_second_archive_come_to_lie_beside_the_programs(tmp_path: Path) -> None:
    programs = make_tar(tmp_path / "cuda.tar.gz", {"llama-b1/llama-server": SERVER, "llama-b1/rpc-server": WORKER})
    runtime = make_tar(
        tmp_path / "cudart.tar.gz", {"cudart/libcudart.so.12": b"runtime", "cudart/LICENSE": b"text"}
    )
    assert packed([programs, runtime])["libcudart.so.12"] == b"runtime"
    assert "LICENSE" not in packed([programs, runtime])


def test_of_a_source_archive_the_tree_of_llama_cpp_is_sent(tmp_path: Path) -> None:
    sent = packed([make_source(tmp_path / "source.tar.gz")], SOURCE_TREE)
    assert {"CMakeLists.txt", "ggml/CMakeLists.txt", "tools/llama-server.c"} <= sent.keys()


def test_no_name_and_no_link_of_an_archive_leads_out_of_the_folder(tmp_path: Path) -> None:
    archive = make_tar(
        tmp_path / "evil.tar.gz",
        {
            "bin/llama-server": SERVER,
            "bin/ggml-rpc-server": WORKER,
            "bin/../../etc/cron.d/job": b"evil",
            "/etc/passwd": b"evil",
            "bin/libevil.so": "/etc/shadow",
            "bin/libworse.so": "../libworse.so",
            "bin/..": "..",
        },
    )
    assert packed([archive]).keys() == {"llama-server", "ggml-rpc-server"}


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"bin/llama-server": SERVER}, "no directory with llama-server and ggml-rpc-server or rpc-server"),
        ({"a/llama-server": SERVER, "b/rpc-server": WORKER}, "no directory with"),
        ({f"{top}/{name}": b"" for top in "ab" for name in ("llama-server", "rpc-server")}, "in both a/ and b/"),
    ],
)
def test_an_archive_without_one_folder_of_programs_is_refused(
    tmp_path: Path, files: dict[str, bytes], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        packed([make_zip(tmp_path / "odd.zip", files)])


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(b"GGUF" * 1000)
    with pytest.raises(UsageError, match=r"can't read .*model.gguf"):
        packed([file])


@pytest.mark.parametrize("form", ["zip", "gztar", "xztar"])
def test_an_archive_that_is_damaged_anywhere_is_refused_or_the_same(tmp_path: Path, form: str) -> None:
    folder = tmp_path / "files" / "bin"
    folder.mkdir(parents=True)
    (folder / "llama-server").write_bytes(random.Random(1).randbytes(4096))
    (folder / "rpc-server").write_bytes(WORKER)
    archive = Path(shutil.make_archive(str(tmp_path / "build"), form, tmp_path / "files"))
    whole, content = packed([archive]), archive.read_bytes()
    refused = 0
    for position in range(0, len(content), 97):
        archive.write_bytes(content[:position] + bytes([content[position] ^ 0xFF]) + content[position + 1 :])
        try:
            assert packed([archive]) == whole
        except UsageError:
            refused += 1
    assert refused > 20
