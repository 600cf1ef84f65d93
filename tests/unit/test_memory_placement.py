"""Which slot goes to which device."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.llama_placement import layer_devices
from tests.unit.memory_truth import rows


@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=16).filter(lambda slots: sum(slots) > 1),
    st.integers(0, 60),
)
def test_integer_shares_are_slot_counts(slots: list[int], cpu_layers: int) -> None:
    n_layer = sum(slots) + cpu_layers - 1
    placed = layer_devices(n_layer, sum(slots), slots)
    assert placed[:cpu_layers] == (None,) * cpu_layers
    counts = Counter(placed[cpu_layers:])
    assert [counts[device] for device in range(len(slots))] == slots


@given(
    st.integers(1, 200),
    st.integers(0, 400),
    st.lists(st.floats(0, 1e6, width=32), min_size=1, max_size=16).filter(lambda shares: sum(shares) > 1e-3),
)
def test_devices_are_filled_in_order(n_layer: int, gpu_layers: int, shares: list[float]) -> None:
    placed = layer_devices(n_layer, gpu_layers, shares)
    on_device = [device for device in placed if device is not None]
    assert len(placed) == n_layer + 1
    assert len(on_device) == min(gpu_layers, n_layer + 1)
    assert on_device == sorted(on_device)
    assert all(device < len(shares) for device in on_device)


def test_measured_slots_come_out_as_counts() -> None:
    for row in rows():
        if row.slots != (0,) * len(row.slots):
            counts = Counter(layer_devices(row.header.n_layer, sum(row.slots), row.slots))
            assert tuple(counts[device] for device in range(len(row.slots))) == row.slots, row.name


def test_shares_that_are_no_counts_are_rounded_as_llama_cpp_does() -> None:
    counts = Counter(layer_devices(32, 999, [3, 2]))
    assert counts == {0: 20, 1: 13}
