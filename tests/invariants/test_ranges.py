"""I7: a value outside its range reads None."""

import math
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from admitperf.core.signals import KV_PRESSURE, QUEUE_DEPTH, RUNNING

GAUGES = {
    "vllm:kv_cache_usage_perc": KV_PRESSURE,
    "vllm:num_requests_waiting": QUEUE_DEPTH,
    "vllm:num_requests_running": RUNNING,
}

LARGEST = sys.float_info.max


@pytest.mark.parametrize("name", GAUGES)
@given(value=st.floats() | st.integers())
@example(value=math.nan)
@example(value=math.inf)
@example(value=-0.39)
@example(value=10**400)
def test_i7_a_value_out_of_range_is_unknown_and_one_in_range_is_itself(name, value):
    """I7: nothing is clamped: a reading is the value itself, or None."""
    signal = GAUGES[name]
    known = -LARGEST <= value <= LARGEST and signal.low <= value <= signal.high
    assert signal.read({name: value}) == (float(value) if known else None)


@given(used=st.floats() | st.none() | st.text() | st.booleans())
def test_i7_holds_for_a_source_of_the_users_own(used):
    """I7: a mapping of the user's is held to the same range."""

    def source(metrics):
        return metrics["used"]

    added = KV_PRESSURE.add_source(source)
    try:
        read = KV_PRESSURE.read({"used": used})
    finally:
        KV_PRESSURE.remove_source(added)
    assert read is None or (read == used and 0.0 <= read <= 1.0)
