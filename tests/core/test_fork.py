"""A forked child is a process of its own."""

import os
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")

HEAD = """
import os, sys, threading
from tests.core.rules import *
from admitperf.core.signals import IN_FLIGHT
from admitperf.testing import FakeClock, MemoryLog

def in_child(work):
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        try:
            work()
            sys.stdout.flush()
            os._exit(0)
        except BaseException as error:
            print("child:", repr(error), flush=True)
            os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0
"""


def ran(code, root):
    """What a program prints; it ends within 30 s or it hangs."""
    # From 3.12 on, a fork beside threads is warned of; that is what is tried here.
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c",
         HEAD + textwrap.dedent(code)],
        cwd=root, capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.split()


def test_a_child_starts_with_nothing_in_flight(root):
    """The parent's requests are the parent's, and stay open there."""
    code = """
        policy = rule(admits, reports_outcomes=True)
        for n in range(3):
            policy(QUIET, request_id=f"r{n}", tenant="t", session="s")
        def work():
            led = policy.ledger
            print(led.in_flight, led.tenant_in_flight("t"), led.session_in_flight("s"))
            policy(QUIET, request_id="r0")
            print(policy.ledger.in_flight)
        in_child(work)
        print(policy.ledger.in_flight)
    """
    assert ran(code, root) == ["0", "0", "0", "1", "3"]


def test_a_child_must_hear_of_outcomes_itself(root):
    """What the parent saw end says nothing about whether the child's host reports."""
    code = """
        seen = []
        policy = rule(sees(seen, IN_FLIGHT))
        policy.outcome(policy(QUIET).request_id)
        policy(QUIET)
        def work():
            policy(QUIET)
            print(seen[-1]["in_flight"])
        in_child(work)
        print(seen[-1]["in_flight"])
    """
    assert ran(code, root) == ["None", "0.0"]


def test_a_child_is_a_run_of_its_own(root):
    """It has another run id, its own numbers from 1 on, and ids that do not clash."""
    code = """
        log = MemoryLog()
        policy = rule(admits, log=log)
        for _ in range(5):
            policy(QUIET)
        parent = log.decisions[-1]
        def work():
            ids = [policy(QUIET).request_id for _ in range(2)]
            lines = log.decisions
            print([line["seq"] for line in lines] == [1, 2])
            print({line["run"] for line in lines} == set(log.runs))
            print(log.runs[0] != parent["run"], parent["id"] not in ids)
        in_child(work)
        print(policy(QUIET).seq, log.runs)
    """
    assert ran(code, root) == ["True", "True", "True", "True", "6", "[]"]


def test_a_child_forked_while_another_thread_decides_is_not_locked_out(root):
    """The lock that a thread of the parent held does not exist in the child."""
    code = """
        inside, go_on = threading.Event(), threading.Event()
        def decide(policy, metrics):
            if metrics.request.tenant == "slow":
                inside.set()
                go_on.wait()
            return policy.admit()
        policy = rule(decide, reports_outcomes=True)
        other = rule(admits)
        thread = threading.Thread(target=lambda: policy(QUIET, tenant="slow"))
        thread.start()
        inside.wait()
        def work():
            policy.outcome(policy(QUIET, request_id="r").request_id)
            other(QUIET)
            print(policy.ledger.in_flight)
        in_child(work)
        go_on.set()
        thread.join()
        print(policy.ledger.in_flight)
    """
    assert ran(code, root) == ["0", "1"]


def test_an_end_of_the_parents_request_frees_nothing_in_the_child(root):
    """It is unknown there, and counted."""
    code = """
        log = MemoryLog()
        policy = rule(admits, log=log, reports_outcomes=True)
        policy(QUIET, request_id="r")
        def work():
            policy(QUIET, request_id="own")
            policy.outcome("r")
            print(policy.ledger.in_flight, log.controls[-1]["event"])
        in_child(work)
    """
    assert ran(code, root) == ["1", "outcome_unknown"]


def test_a_reading_made_before_the_fork_is_a_new_reading_in_the_child(root):
    """Its number in the child's run is the child's own: no two readings share one."""
    code = """
        clock, log = FakeClock(), MemoryLog()
        policy = rule(admits, clock=clock, log=log, raw="reference")
        old = [reading(clock, {"kv_pressure": n / 10}) for n in range(5)]
        for one in old:
            policy(one)
        def work():
            for one in [*old, *(reading(clock, {"x": n}) for n in range(5))]:
                policy(one)
            numbers = [line["reading"] for line in log.decisions]
            print(len(set(numbers)), log.readings[numbers[4]]["kv_pressure"])
        in_child(work)
    """
    assert ran(code, root) == ["10", "0.4"]


def test_a_childs_child_is_a_process_of_its_own_too(root):
    """Pre-forking servers fork more than once."""
    code = """
        log = MemoryLog()
        policy = rule(admits, log=log, reports_outcomes=True)
        policy(QUIET)
        def grandchild():
            print(policy.ledger.in_flight, len(log.runs))
        def child():
            policy(QUIET)
            in_child(grandchild)
        in_child(child)
    """
    assert ran(code, root) == ["0", "2"]


def test_a_sink_that_cannot_follow_a_fork_stops_nobody(root):
    """Every policy of the child starts anew, also behind one whose sink raises."""
    code = """
        class Broken(MemoryLog):
            def after_fork(self, run):
                raise OSError("gone")
        policies = [rule(admits, log=Broken(), reports_outcomes=True) for _ in range(3)]
        for policy in policies:
            policy(QUIET)
        def work():
            print(*(policy.ledger.in_flight for policy in policies))
            print(*(policy(QUIET).admitted for policy in policies))
        in_child(work)
    """
    assert ran(code, root) == ["0", "0", "0", "True", "True", "True"]


def test_what_a_user_mapped_is_still_mapped_in_the_child(root):
    """Sources on the constants are process-wide, and a child starts as a copy."""
    code = """
        KV_PRESSURE.add_source("acme")
        def work():
            print(KV_PRESSURE.read({"acme": 0.5}))
        in_child(work)
    """
    assert ran(code, root) == ["0.5"]
