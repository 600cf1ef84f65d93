"""The frame of an answer: what arrives is what was sent, or an error."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from clusterctl.errors import ClusterctlError
from clusterctl.remote.answer import Answer, Section, parse_answer

PRELUDE = Path(__file__).parents[2] / "clusterctl/remote/scripts/prelude.sh"

names = st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), min_size=1, max_size=12)
sections = st.builds(
    Section, st.integers(-9999, 9999), st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
)
answers = st.dictionaries(names, sections, max_size=6)


def framed(parts: Mapping[str, Section]) -> bytes:
    """The bytes that `section` of prelude.sh prints for some sections."""
    return b"".join(
        f"{name} {part.status} {len(part.text.encode())}\n{part.text}\n".encode() for name, part in parts.items()
    )


def outcome(data: bytes) -> Answer | ClusterctlError:
    """The answer in some bytes, or the error that they are."""
    try:
        return parse_answer("strix1", data)
    except ClusterctlError as error:
        return error


@given(answers)
@example({"a b 1": Section(0, "b 0 3\nxyz\n")})
def test_sections_come_back_as_they_were_sent(parts: dict[str, Section]) -> None:
    assert parse_answer("strix1", framed(parts)) == parts


@given(answers, st.data())
def test_an_answer_that_is_cut_short_is_an_error_or_lacks_whole_sections(
    parts: dict[str, Section], data: st.DataObject
) -> None:
    whole = framed(parts)
    seen = outcome(whole[: data.draw(st.integers(0, len(whole)))])
    if isinstance(seen, ClusterctlError):
        assert seen.node == "strix1"
    else:
        assert list(seen.items()) == list(parts.items())[: len(seen)]


@pytest.mark.parametrize(
    "noise",
    [
        b"system 0 " + b"9" * 5000 + b"\n",
        b"system --5 0\n\n",
        "system ² 0\n\n".encode(),
        b"system 0 3\nabcd",
        b"system 0 3\nabc",
        b"system 0 -1\n",
        b"system 0\n",
        b"\n",
    ],
)
def test_what_is_not_of_the_form_is_refused(noise: bytes) -> None:
    assert isinstance(outcome(noise), ClusterctlError)
    assert isinstance(outcome(b"system 0 2\nok\n" + noise), ClusterctlError)


@given(st.binary(max_size=200))
def test_anything_else_is_an_error_with_what_came(noise: bytes) -> None:
    seen = outcome(noise)
    if isinstance(seen, ClusterctlError):
        assert "the node's answer broke off" in seen.message
        assert seen.hint


def test_bytes_that_are_no_text_are_kept_readable() -> None:
    answer = parse_answer("strix1", b"log 0 4\n\xff\xfeok\n")
    assert answer["log"].text.endswith("ok")


def test_a_missing_section_is_told_as_the_nodes_fault() -> None:
    answer = parse_answer("strix1", b"system 0 2\nok\n")
    with pytest.raises(ClusterctlError, match="strix1: the node's answer has no part `sockets`"):
        _ = answer["sockets"]
    assert "sockets" not in answer
    assert answer.get("sockets") is None


@pytest.mark.parametrize("shell", [shell for shell in ("sh", "dash", "bash") if shutil.which(shell)])
@settings(max_examples=20, deadline=None)
@given(text=st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=80))
def test_the_shells_count_bytes_as_we_do(shell: str, text: str) -> None:
    script = '. "$1"; section "odd name" 7 "$2"'
    sent = subprocess.run([shell, "-c", script, "sh", PRELUDE, text], capture_output=True, check=True).stdout
    assert parse_answer("strix1", sent) == {"odd name": Section(7, text)}
