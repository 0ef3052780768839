"""While a policy decides it touches nothing outside its own process."""

import json
import subprocess
import sys

PROGRAM = """
import json, sys, threading, warnings

warnings.simplefilter("ignore")
from admitperf import Policy
from tests.policies.verdicts import installed
from admitperf.testing import FakeClock

class Leaky(Policy):
    name = "leaky"

    def decide(self, metrics):
        import wave
        open("/dev/null").close()
        threading.Thread(target=len, args=("",)).start()
        return self.admit()

WATCHED = ("import", "open", "socket.", "subprocess.", "os.", "thread")
seen, deciding = [], None

def watch(event, args):
    if deciding is not None and event.startswith(WATCHED):
        seen.append([deciding, event, repr(args)[:200]])

# Before Python 3.12 a new thread is no audit event, so it is made one.
begin = threading._start_new_thread

def begin_seen(*args):
    watch("thread", args)
    return begin(*args)

threading._start_new_thread = begin_seen

READINGS = [
    {},
    {"vllm:kv_cache_usage_perc": 0.1, "vllm:num_requests_waiting": 0.0},
    {"vllm:kv_cache_usage_perc": 0.99, "vllm:num_requests_waiting": 500.0},
    {"vllm:kv_cache_usage_perc": float("nan"), "vllm:num_requests_waiting": -1.0},
]
FACTS = [
    {},
    {"request_id": "r", "tenant": "t", "session": "s", "input_tokens": 512,
     "max_output_tokens": 64, "deadline_s": 2.0, "priority": 1},
]

policies = [
    cls(clock=FakeClock(), reports_outcomes=True)
    for cls in [*installed().values(), Leaky]
]
sys.addaudithook(watch)
for policy in policies:
    for raw in READINGS:
        for facts in FACTS:
            deciding = policy.name
            decision = policy(raw, **facts)
            policy.first_token(decision.request_id)
            policy.outcome(decision.request_id, ok=True, ttft_ms=5)
            deciding = None
print(json.dumps({"policies": [policy.name for policy in policies], "seen": seen}))
"""


def test_no_installed_policy_touches_the_outside_while_it_decides(root):
    """No socket, process, thread, import or file between a call and its answer."""
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    report = json.loads(ran.stdout)
    assert [seen for seen in report["seen"] if seen[0] != "leaky"] == []
    assert "kv_threshold" in report["policies"]
    # The control: one that does touch the outside is seen, each way it does.
    assert {event for _, event, _ in report["seen"]} == {"import", "open", "thread"}
