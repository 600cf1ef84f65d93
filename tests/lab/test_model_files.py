"""Model files that are missing, cut short or incomplete: told before anything is started."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lab.conftest import MakeLab
from tests.lab.lab import Lab, NodeSpec
from tests.lab.operator import Operator, operator_of, remains

# A header of the split form llama.cpp's gguf-split writes, for the first of three parts and no tensors:
# magic, version 3, 0 tensors, 3 values: split.no u16 0, split.count u16 3, split.tensors.count i32 0.
FIRST_OF_THREE = (
    b"GGUF\x03\0\0\0" + bytes(8) + b"\x03" + bytes(7)
    + b"\x08" + bytes(7) + b"split.no" + b"\x02\0\0\0" + b"\0\0"
    + b"\x0b" + bytes(7) + b"split.count" + b"\x02\0\0\0" + b"\x03\0"
    + b"\x13" + bytes(7) + b"split.tensors.count" + b"\x05\0\0\0" + bytes(4)
)  # fmt: skip


@pytest.fixture(scope="module")
def lab(make_lab: MakeLab) -> Lab:
    return make_lab([NodeSpec("head", models=True), NodeSpec("worker")])


@pytest.fixture
def operator(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    operator = operator_of(lab, tmp_path_factory.mktemp("operator"), workers=["worker"])
    before = remains(lab)
    yield operator
    assert remains(lab) == before


def up_with(operator: Operator, path: str) -> tuple[int, str]:
    """The exit code of `up` for this model, and what it said; nothing may have been started."""
    done = operator.with_recipe(model={"path": path}).run("up")
    assert "start the worker" not in done.stderr
    return done.exit_code, done.stderr


def test_a_missing_model_is_named(operator: Operator) -> None:
    code, said = up_with(operator, "/models/none.gguf")
    assert code == 6
    assert "head: /models/none.gguf is missing on the head" in said


def test_check_names_a_missing_model(operator: Operator) -> None:
    check = operator.with_recipe(model={"path": "/models/none.gguf"}).run("check", "--json")
    assert check.exit_code == 6
    worker, head = check.document["nodes"]
    assert (worker["problems"], head["problems"][0]["code"]) == ([], "model-missing")


@pytest.fixture(scope="module")
def files(lab: Lab) -> None:
    """Damaged copies of the model in the head's home."""
    lab.ssh("head", f"head -c 40000000 {lab.model_path} >~/half.gguf; head -c 5000 {lab.model_path} >~/start.gguf")
    lab.ssh("head", "printf 'GET / HTTP/1.1' >~/page.gguf; : >~/empty.gguf")
    lab.ssh("head", f"cp {lab.model_path} ~/secret.gguf; mkdir ~/folder.gguf")
    home = lab.nodes["head"].home
    for number in (1, 3):
        (home / f"part-0000{number}-of-00003.gguf").write_bytes(FIRST_OF_THREE)


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ("half.gguf", "the file is cut short: it has 40000000 bytes"),
        ("start.gguf", "but it ends at byte 5000"),
        ("page.gguf", "not a GGUF"),
        ("empty.gguf", "is empty on the head"),
        ("folder.gguf", "folder.gguf is a directory"),
        ("part-00001-of-00003.gguf", "part-00002-of-00003.gguf is missing"),
    ],
)
def test_a_damaged_model_is_told_before_anything_starts(operator: Operator, file: str, reason: str) -> None:
    code, said = up_with(operator, f"~/{file}")
    assert code in (2, 6)
    assert operator.with_recipe(model={"path": f"~/{file}"}).run("check").exit_code == code
    assert "error: head: " in said
    assert reason in said
