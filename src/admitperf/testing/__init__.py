"""For the tests of people who write a policy or a host.

    from admitperf.testing import FakeClock, MemoryLog, check_policy, snapshot

`snapshot` feeds `decide` by hand, `FakeClock` and `MemoryLog` make whole calls
repeatable, `check_policy` says whether a policy keeps to the rules.
"""

from admitperf.testing.conformance import check_policy
from admitperf.testing.fake_clock import FakeClock
from admitperf.testing.memory_log import MemoryLog
from admitperf.testing.snapshots import snapshot

__all__ = ["FakeClock", "MemoryLog", "check_policy", "snapshot"]
