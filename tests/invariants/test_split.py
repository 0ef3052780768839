"""I8: one key, one arm."""

import os
import subprocess
import sys

from hypothesis import given, settings
from hypothesis import strategies as st

from admitperf import Policy

PROGRAM = """
from admitperf import Policy

class No(Policy):
    name = "no"

    def decide(self, metrics):
        return self.reject("kv_pressure")

policy = No(enforce=0.5)
print("".join(str(int(policy({}, session=f"s{n}").enforced)) for n in range(400)))
"""


class No(Policy):
    """Refuses everything, so that only the split lets anyone in."""

    name = "no"

    def decide(self, metrics):
        """Refuse."""
        return self.reject("kv_pressure")


@given(key=st.text(min_size=1, max_size=40), share=st.floats(0.0, 1.0))
@settings(deadline=None)
def test_i8_a_key_falls_in_the_same_arm_each_time(key, share):
    """I8: session, else logical id, else request id decides, and nothing beside it."""
    one, other = No(enforce=share), No(enforce=share)
    first = one({}, session=key, request_id="r1", tenant="a").enforced
    assert other({}, session=key, request_id="r2", logical_id="l").enforced == first
    assert one({}, logical_id=key, request_id="r3").enforced == first
    assert other({}, request_id=key).enforced == first


@given(key=st.text(min_size=1, max_size=40), shares=st.tuples(*[st.floats(0, 1)] * 2))
@settings(deadline=None)
def test_i8_a_key_that_is_governed_stays_so_when_the_share_grows(key, shares):
    """I8: rolling out from 10 % to 20 % moves nobody out of the first 10 %."""
    small, large = (No(enforce=share) for share in sorted(shares))
    if small({}, session=key).enforced:
        assert large({}, session=key).enforced


def test_i8_the_arms_are_the_same_in_every_process():
    """I8: two processes with other hash seeds agree on 400 sessions, half each."""
    one, other = (
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True, text=True, check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    )  # fmt: skip
    assert one == other
    # Six standard deviations of 400 fair coins.
    assert 140 < one.count("1") < 260
