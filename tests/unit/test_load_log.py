"""Where the weights went, from the head's log."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from clusterctl.llama.load_log import model_buffers

LOG = """\
load_tensors: offloading 30 repeating layers to GPU
load_tensors: offloaded 31/31 layers to GPU
load_tensors:   CPU_Mapped model buffer size =    28.69 MiB
load_tensors: RPC0[10.99.0.2:50052] model buffer size =    44.62 MiB
load_tensors: RPC1[10.99.0.3:50052] model buffer size =    40.00 MiB
load_tensors: RPC2[10.99.0.3:50052] model buffer size =     4.62 MiB
load_tensors: RPC[10.99.0.4:50052] model buffer size =     1.50 MiB
load_tensors:      Vulkan0 model buffer size =    12.00 MiB
llama_kv_cache: RPC0[10.99.0.2:50052] KV buffer size =    24.00 MiB
"""


def test_weights_are_summed_by_worker_whatever_the_build_calls_it() -> None:
    assert model_buffers(LOG) == {
        "CPU_Mapped": 28.69,
        "10.99.0.2:50052": 44.62,
        "10.99.0.3:50052": 44.62,
        "10.99.0.4:50052": 1.5,
        "Vulkan0": 12.0,
    }


def test_lines_with_a_time_stamp_count_as_well() -> None:
    stamped = "0.00.512.340 I load_tensors: RPC0[10.99.0.2:50052] model buffer size =    44.62 MiB\n"
    assert model_buffers(stamped) == {"10.99.0.2:50052": 44.62}


def test_a_log_without_buffers_names_none() -> None:
    assert model_buffers("") == {}
    assert model_buffers("error: failed to load model\n") == {}


@given(
    st.lists(st.text(max_size=30) | st.from_regex(r"load_tensors: +\S{1,9} model buffer size = +[0-9.]{1,9} MiB"))
)
def test_no_log_is_a_crash(lines: list[str]) -> None:
    assert all(size >= 0 for size in model_buffers("\n".join(lines)).values())
