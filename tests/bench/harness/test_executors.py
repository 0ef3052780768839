"""Whoever runs a task, what it gives and what goes wrong come back."""

import os
import signal

import pytest

from admitperf.bench.harness.executors import (
    ExecutorError,
    Here,
    Processes,
    cores,
    executor,
)


def doubled(number):
    """A task."""
    if number < 0:
        raise ValueError(f"{number} is below 0")
    return 2 * number


def killed(_):
    """A task whose process the system ends."""
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture(scope="module")
def processes():
    """Two of them."""
    made = Processes(2)
    yield made
    made.close()


def test_results_come_from_here_and_from_there(processes):
    """In some order."""
    assert list(Here().each(doubled, [1, 2, 3])) == [2, 4, 6]
    assert sorted(processes.each(doubled, [1, 2, 3])) == [2, 4, 6]


@pytest.mark.parametrize("where", ["here", "there"])
def test_what_a_task_raises_is_raised(processes, where):
    """As it was."""
    runs = Here() if where == "here" else processes
    with pytest.raises(ValueError, match="-1 is below 0"):
        list(runs.each(doubled, [-1]))


def test_a_process_that_is_killed_is_told_in_one_line():
    """It may have wanted too much memory."""
    runs = Processes(1)
    with pytest.raises(ExecutorError, match="fewer --jobs"):
        list(runs.each(killed, [1]))
    runs.close()


def test_one_job_is_run_here():
    """And without a number there is one a core."""
    assert isinstance(executor("local", 1), Here)
    assert cores() >= 1
