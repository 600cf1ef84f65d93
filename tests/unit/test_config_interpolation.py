"""Filling `${VAR}` in texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.config.interpolation import fill

ENVIRONMENT = {"PORT": "50052", "EMPTY": "", "NESTED": "${PORT}"}


@pytest.mark.parametrize(
    ("written", "filled"),
    [
        ("${PORT}", "50052"),
        ("a${PORT}b${PORT}", "a50052b50052"),
        ("${PORT:-1}", "50052"),
        ("${UNSET:-1}", "1"),
        ("${UNSET:-}", ""),
        ("${UNSET:-a:-b c}", "a:-b c"),
        ("${EMPTY}", ""),
        ("${EMPTY:-used}", "used"),
        ("$${PORT}", "${PORT}"),
        ("$$${PORT}", "$${PORT}"),
        ("${NESTED}", "${PORT}"),
        ("$PORT {PORT} $ {PORT} $$", "$PORT {PORT} $ {PORT} $$"),
    ],
)
def test_references_are_filled_once_and_everything_else_stays(written: str, filled: str) -> None:
    assert fill(written, ENVIRONMENT) == filled


def test_a_variable_that_is_not_set_is_named_with_a_way_out() -> None:
    with pytest.raises(ValueError, match=r"`UNSET` is not set; set it, or write \$\{UNSET:-default\}"):
        fill("x${UNSET}", ENVIRONMENT)


@pytest.mark.parametrize("written", ["${", "${}", "${PORT", "${1A}", "${PORT:?x}", "${A B}", "${A:-${PORT}}"])
def test_a_reference_that_means_something_else_elsewhere_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match="can't be read"):
        fill(written, ENVIRONMENT)


@given(st.text())
def test_any_value_arrives_as_it_is(value: str) -> None:
    assert fill("<${ANY}>", {"ANY": value}) == f"<{value}>"


@given(st.text("${}AB:- "))
def test_any_text_can_be_written_with_the_escape(text: str) -> None:
    assert fill(text.replace("${", "$${"), {}) == text
