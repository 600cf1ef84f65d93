"""What backends take beside llama.cpp's own accounting."""

from __future__ import annotations

import pytest

from clusterctl.model import MIB
from clusterctl.planning.margins import margin_bytes


@pytest.mark.parametrize("backend", ["cuda", "rocm", "vulkan", "metal", "sycl", "cpu"])
def test_every_backend_of_an_inventory_has_a_margin(backend: str) -> None:
    assert 0 < margin_bytes(backend) <= margin_bytes(backend, 1000 * MIB) <= margin_bytes(None, 1000 * MIB)


def test_the_margin_grows_with_the_compute_buffer() -> None:
    assert margin_bytes("cuda", 400 * MIB) - margin_bytes("cuda") == 100 * MIB


def test_an_unknown_backend_gets_the_largest_margin() -> None:
    assert margin_bytes("abacus") == margin_bytes(None) == margin_bytes("rocm")
