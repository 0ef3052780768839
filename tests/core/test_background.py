"""Work that takes long is done beside decisions, one piece at a time."""

import threading

import pytest
from tests.core.rules import QUIET, admits, rule
from tests.core.test_fork import ran

from admitperf.core.background import Background
from admitperf.testing import FakeClock, MemoryLog

LONG_S = 20.0
"""After so long a test is let go that would hang."""


def working(work, **given):
    """A policy with this work, which keeps what came of it."""

    def task(policy, metrics):
        policy.tasks = [*getattr(policy, "tasks", []), metrics.now_s]
        return work

    def task_done(policy, metrics, result):
        policy.results = [*getattr(policy, "results", []), (metrics.now_s, result)]

    given = {"clock": FakeClock(start_s=100.0), "log": MemoryLog(), **given}
    return rule(admits, **{"task": task, "task_done": task_done, **given})


class Slow:
    """Work that lasts until it is let go."""

    def __init__(self):
        self.begun, self.go = threading.Event(), threading.Event()

    def __call__(self):
        """Is at it."""
        self.begun.set()
        self.go.wait(LONG_S)
        return "done"

    def in_thread(self, policy):
        """A thread in which a policy is at it."""
        thread = threading.Thread(target=policy.background, daemon=True)
        thread.start()
        assert self.begun.wait(LONG_S)
        return thread


def test_it_is_done_in_the_thread_that_calls():
    """What comes of it is handed in, with the newest reading of that time."""
    seen = []
    policy = working(lambda: seen.append(threading.get_ident()))
    policy(QUIET)
    policy.background()
    assert seen == [threading.get_ident()]
    assert policy.tasks == [100.0]
    assert policy.results == [(100.0, None)]


def test_there_is_nothing_to_do_before_the_first_reading_or_without_a_task():
    """No hook is called on nothing, and None is no work."""
    policy = working(lambda: 1)
    policy.background()
    assert not hasattr(policy, "tasks")
    idle = working(None)
    idle(QUIET)
    idle.background()
    assert not hasattr(idle, "results")
    plain = rule(admits)
    plain(QUIET)
    plain.background()
    assert (plain.has_tasks, policy.has_tasks) == (False, True)


def test_decisions_are_made_while_it_lasts():
    """They come and end, the reading changes, and none waits for it."""
    slow = Slow()
    policy = working(slow, reports_outcomes=True)
    policy(QUIET)
    thread = slow.in_thread(policy)
    for n in range(50):
        d = policy({**QUIET, "queue_depth": float(n)})
        policy.outcome(d.request_id)
    assert thread.is_alive()
    assert not hasattr(policy, "results")
    policy.settings.clock.advance(3.0)
    slow.go.set()
    thread.join(LONG_S)
    assert policy.results == [(103.0, "done")]


def test_one_is_under_way_at_a_time():
    """A second caller goes on at once; the next one after it has its turn."""
    slow = Slow()
    policy = working(slow)
    policy(QUIET)
    thread = slow.in_thread(policy)
    policy.background()
    assert thread.is_alive()
    assert len(policy.tasks) == 1
    slow.go.set()
    thread.join(LONG_S)
    policy.background()
    assert len(policy.tasks) == len(policy.results) == 2


def fails(*_):
    """Raises."""
    raise RuntimeError("no")


@pytest.mark.parametrize(
    "given", [{"task": fails}, {"work": fails}, {"task_done": fails}]
)
def test_what_raises_is_written_down_once_and_tried_again(given):
    """It reaches no host, and ends nothing."""
    policy = working(given.pop("work", lambda: 1), **given)
    policy(QUIET)
    for _ in range(3):
        policy.background()
    failed = policy.settings.log.controls
    assert [line["event"] for line in failed] == ["task_failed"]
    assert "no" in failed[0]["error"]
    assert policy(QUIET).admitted


def test_a_thread_of_its_own_is_begun_once_at_a_time():
    """Whoever reads goes on reading meanwhile; a later reading begins the next."""
    slow = Slow()
    policy = working(slow)
    policy(QUIET)
    beside = Background(policy)
    for _ in range(20):
        beside.soon()
    assert slow.begun.wait(LONG_S)
    assert len(policy.tasks) == 1
    slow.go.set()
    beside._thread.join(LONG_S)
    beside.soon()
    beside._thread.join(LONG_S)
    assert len(policy.tasks) == 2


def test_a_policy_without_tasks_costs_no_thread():
    """Nor does one whose thread cannot be had cost more than that."""
    beside = Background(rule(admits))
    beside.soon()
    assert beside._thread is None


def test_no_thread_to_be_had_is_no_fault(monkeypatch):
    """The next reading tries again."""
    policy = working(lambda: 1)
    policy(QUIET)
    beside = Background(policy)
    with monkeypatch.context() as patch:
        patch.setattr("admitperf.core.background.Thread.start", fails)
        beside.soon()
    beside.soon()
    beside._thread.join(LONG_S)
    assert len(policy.results) == 1


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="no fork here")
def test_a_child_of_a_fork_in_the_middle_of_it_begins_its_own(root):
    """The parent's is the parent's, and ends there."""
    code = """
        from tests.core.test_background import Slow, working, Background
        slow = Slow()
        policy = working(slow)
        policy(QUIET)
        beside = Background(policy)
        beside.soon()
        slow.begun.wait(20)
        def work():
            slow.go = threading.Event()
            slow.go.set()
            policy(QUIET)
            policy.background()
            beside.soon()
            beside._thread.join(20)
            print(len(policy.results))
        in_child(work)
        print(hasattr(policy, "results"))
        slow.go.set()
        beside._thread.join(20)
        print(len(policy.results))
    """
    assert ran(code, root) == ["2", "False", "1"]
