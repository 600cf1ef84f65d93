"""Fixtures of the lab: `make_lab` gives a test real machines; whoever asks for it is marked `lab`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence

import pytest

from tests.lab.lab import Lab, NodeSpec
from tests.lab.system import missing_requirement
from tools.fetch import unsupported_reason

MakeLab = Callable[[Sequence[NodeSpec]], Lab]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs a lab; keep a module's labs in one pytest-xdist worker (`--dist loadgroup`)."""
    for item in items:
        if "require_lab" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.lab)
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))


@pytest.fixture(scope="session")
def require_lab() -> None:
    """Skip where this machine can't hold a lab; in continuous integration (`CI` set) fail instead."""
    if reason := missing_requirement() or unsupported_reason():
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)


@pytest.fixture(scope="module")
def make_lab(require_lab: None) -> Iterator[MakeLab]:
    """Makes labs that stand until the module's last test; `with make_lab(…) as lab:` ends one sooner."""
    with contextlib.ExitStack() as labs:
        yield lambda specs: labs.enter_context(Lab(specs))
