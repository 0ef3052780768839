"""The conformance kit finds what it is there to find."""

import itertools
import logging
from typing import Annotated, ClassVar

import pytest

from admitperf import Charge, Param, Policy, Reason
from admitperf.core.entry import Entry
from admitperf.core.signals import (
    IN_FLIGHT,
    INPUT_TOKENS,
    KV_PRESSURE,
    QUEUE_DEPTH,
    TENANT_SHARE,
)
from admitperf.testing import check_policy

_drawn = itertools.count()


class Good(Policy):
    """A policy that keeps to the rules."""

    name = "good"
    requires = (KV_PRESSURE,)
    threshold: Annotated[float, Param("refuse from here", low=0.0, high=1.0)] = 0.9

    def decide(self, metrics):
        """Refuse at the threshold."""
        if metrics.at_least(KV_PRESSURE, self.threshold):
            return self.defer("kv_pressure")
        return self.admit()


class Rereads(Good):
    """Opens a file for every request."""

    def decide(self, metrics):
        """Read something, then decide."""
        with open(__file__, encoding="utf-8"):  # noqa: PTH123  the plainest way
            return super().decide(metrics)


class Connects(Good):
    """Opens a socket for every request."""

    def decide(self, metrics):
        """Ask somebody else."""
        import socket

        with socket.socket():
            return super().decide(metrics)


class Spawns(Good):
    """Starts a process for every request."""

    def decide(self, metrics):
        """Ask the shell."""
        import subprocess

        subprocess.run(["/bin/true"], check=False)
        return super().decide(metrics)


class Draws(Good):
    """Answers by lot."""

    def decide(self, metrics):
        """Refuse the fifth that anybody ever asks."""
        if metrics.at_least(KV_PRESSURE, 0.0) and next(_drawn) == 5:
            return self.defer("kv_pressure")
        return self.admit()


class Silent(Good):
    """Refuses without leaving a gate."""

    def decide(self, metrics):
        """Compare plain floats."""
        if float(KV_PRESSURE.read(metrics)) >= self.threshold:
            return self.defer("kv_pressure")
        return self.admit()


class Crashes(Good):
    """Does not expect a long prompt."""

    def decide(self, metrics):
        """Divide by what is left of the context."""
        left = 1_000_000_000 - (metrics.request.input_tokens or 0)
        return self.admit() if 1 / left > 0 else self.defer("kv_pressure")


class Invents(Good):
    """Refuses for a reason in no table."""

    def decide(self, metrics):
        """Make a reason up."""
        if metrics.at_least(KV_PRESSURE, self.threshold):
            return self.defer("too_busy")
        return self.admit()


class Answers(Good):
    """Returns no decision."""

    def decide(self, metrics):
        """Say yes in another language."""
        return metrics.below(KV_PRESSURE, self.threshold)


class Undeclared(Good):
    """Reads a second signal that it does not require."""

    def decide(self, metrics):
        """Look at the queue too."""
        if metrics.above(QUEUE_DEPTH, 10):
            return self.defer("queue_depth")
        return super().decide(metrics)


class UndeclaredFact(Good):
    """Reads a fact's signal that it does not require."""

    def decide(self, metrics):
        """Look at the prompt too."""
        if INPUT_TOKENS.read(metrics) > 10**9:
            return self.reject("too_large")
        return super().decide(metrics)


class Watches(Good):
    """Fails in its hook."""

    def observe(self, metrics, outcome):
        """Assume that there is always an outcome."""
        return outcome.ok


class Toils(Good):
    """Fails in its work."""

    def task(self, metrics):
        """Work that cannot be done."""
        return lambda: 1 / 0


class Refusing(Good):
    """Calls itself a baseline and refuses."""

    baseline = True


class Braver(Good):
    """Decides although it cannot see."""

    def _rule(self, snapshot, view):
        """Always yes."""
        return self.admit()


class Shadows(Good):
    """Calls a method of its own as Policy calls one of its."""

    def _take(self, tokens):
        """Of a bucket."""


class Hides(Good):
    """Calls a method of its own as Policy calls what every instance has."""

    def _own(self):
        """Never called: the instance's attribute stands before it."""


class Stubborn(Good):
    """Chooses the posture itself."""

    def __init__(self, **given):
        super().__init__(**{**given, "on_blind": "admit"})


class Dated(Good):
    """Goes by the time of day."""

    def decide(self, metrics):
        """Refuse in the second half of each hour."""
        metrics.at_least(KV_PRESSURE, self.threshold)
        late = self.settings.clock.wall_ns() // 1_000_000_000 % 3600 > 1800
        return self.defer("kv_pressure") if late else self.admit()


class Pays(Good):
    """Takes something for a refusal, which no request's end gives back."""

    def decide(self, metrics):
        """Charge for asking."""
        d = super().decide(metrics)
        if d.reason:
            asked = Entry(0, "asked", metrics.request, metrics.now_ns, admitted=False)
            self.ledger.charge(asked, Charge("asked"))
        return d


class Understates(Good):
    """Refuses for more than it says."""

    refuses_with = ("queue_depth", "full_moon")


class Deaf(Good):
    """Enforces what it was told not to."""

    def __init__(self, **given):
        super().__init__(**{**given, "enforce": 1.0})


class Lenient(Good):
    """Takes any keyword."""

    def __init__(self, **given):
        known = {k: v for k, v in given.items() if not k.startswith("no_parameter")}
        super().__init__(**known)


class Strict(Good):
    """Does not take the keywords that every policy takes."""

    def __init__(self, threshold=0.9):
        super().__init__(threshold=threshold)


class Undocumented(Good):
    """Replaced below: its fault is to have none."""

    name = "undocumented"
    bound: int = 3


Undocumented.__doc__ = None


class Misnamed(Good):
    """Has a name that no file can have."""

    name = "KV wall"


class Misplaced(Good):
    """Says something about itself that nobody knows."""

    unit = "packet"
    signal_structure = "triple-gate"


class Impostor(Good):
    """Calls itself what another class is offered as."""

    name = "kv_threshold"


class Needy(Good):
    """Has a parameter without a default."""

    quota: Annotated[int, Param("requests a day", low=1)]


class Leaks(Good):
    """Does not hear of requests that end."""

    def outcome(self, request_id, **told):
        """Forget it."""


@pytest.mark.parametrize(
    ("cls", "fault"),
    [
        (Rereads, "decide does open("),
        (Connects, "decide does socket.__new__("),
        (Spawns, "decide does subprocess.Popen("),
        (Draws, "two fresh instances answer the same calls differently"),
        (Silent, "refuses for kv_pressure and leaves no gate"),
        (Crashes, "an enormous request: decide failed: ZeroDivisionError"),
        (Invents, "reason 'too_busy' is not in the table"),
        (Answers, "decide returned True, not a decision"),
        (Undeclared, "it needs more than `requires` says: queue_depth"),
        (UndeclaredFact, "it needs more than `requires` says: input_tokens"),
        (Watches, "observe failed: AttributeError"),
        (Toils, "task failed: ZeroDivisionError"),
        (Refusing, "a baseline refuses for kv_pressure"),
        (Braver, "without kv_pressure it answers"),
        (Shadows, "Shadows._take is a name of Policy's own: rename it"),
        (Hides, "Hides._own is a name of Policy's own: rename it"),
        (Braver, "Braver._rule is a name of Policy's own: rename it"),
        (Stubborn, "with on_blind='reject' and without kv_pressure it answers"),
        (Stubborn, "with on_blind='defer' and without kv_pressure it answers"),
        (Dated, "it answers differently when the wall clock is set"),
        (Pays, "a full engine: a request that is refused is charged"),
        (Pays, "1 charges stay after all have ended"),
        (Understates, "refuses for kv_pressure, not among refuses_with"),
        (Understates, "refuses_with: 'full_moon' is no reason of the table"),
        (Deaf, "with enforce=0.0 something was refused"),
        (Lenient, "an unknown keyword is not refused"),
        (Strict, "it cannot be constructed: TypeError"),
        (Undocumented, "the class has no docstring"),
        (Undocumented, "parameter bound has no Param with a sentence about it"),
        (Misnamed, "name = 'KV wall' is not lower case"),
        (Misplaced, "unit = 'packet' is not one of request, agent-session, tenant"),
        (Misplaced, "signal_structure = 'triple-gate' is not one of scalar"),
        (Impostor, "leads to admitperf.policies.kv_threshold:KvThreshold"),
        (Needy, "quota is required"),
        (Needy, "pass quota to check_policy"),
        (Leaks, "requests stay open after all have ended"),
        (object, "it is no subclass of Policy"),
        ("kv-threshold", "0 entry points offer it, not one"),
    ],
)
def test_a_fault_is_found_and_named(cls, fault):
    """Each way to break a rule fails the kit, with words that say which."""
    with pytest.raises(AssertionError) as caught:
        check_policy(cls)
    assert fault in str(caught.value)


def test_every_fault_is_listed_once():
    """Nobody repairs a policy one run at a time."""
    with pytest.raises(AssertionError) as caught:
        check_policy(Undocumented)
    faults = str(caught.value).splitlines()[1:]
    assert len(faults) == len(set(faults)) == 2


def test_a_policy_that_keeps_to_the_rules_passes():
    """By class, with or without parameters, installed or not."""
    check_policy(Good)
    check_policy(Good, threshold=0.1)
    check_policy(Needy, quota=3)
    check_policy("kv_threshold")


def test_a_policy_with_memory_passes():
    """Answering by what was decided before is no fault; answering by chance is."""

    class Alternates(Policy):
        """Refuses every second request."""

        name = "alternates"
        reasons: ClassVar[dict[str, Reason]] = {"not_yet": Reason(429, fault="caller")}

        def __init__(self, **given):
            super().__init__(**given)
            self.turn = 0

        def decide(self, metrics):
            """Take turns."""
            self.turn += 1
            if metrics.gate("turn", self.turn % 2, 1, "<"):
                return self.reject("not_yet")
            return self.admit()

    check_policy(Alternates)


def test_a_policy_that_uses_a_signal_when_it_is_there_passes():
    """Optional signals need no declaration, as long as their absence is handled."""

    class Optional(Good):
        """Looks at the tenant's share where it is known."""

        requires = (KV_PRESSURE, IN_FLIGHT)

        def decide(self, metrics):
            """Ask the share first, if there is one."""
            share = TENANT_SHARE.read(metrics)
            if share is not None and share > 0.99:
                return self.reject("tenant_share")
            return super().decide(metrics)

    check_policy(Optional)


def test_a_policy_of_the_first_sample_passes_with_its_parameters():
    """A class that annotates nothing is held to everything but its keywords."""

    class Wall(Policy):
        """The sample, with what it needs declared."""

        name = "wall"
        requires = (KV_PRESSURE,)

        def decide(self, metrics):
            """Refuse at the wall."""
            if KV_PRESSURE.read(metrics) >= self.threshold:
                return self.reject("kv_pressure")
            return self.admit()

    check_policy(Wall, threshold=0.9)


def test_the_kit_says_nothing_itself(caplog):
    """It blinds policies on purpose; an author's test output stays clean."""
    with caplog.at_level(logging.WARNING):
        check_policy(Good)
    assert caplog.records == []
    assert logging.getLogger("admitperf").disabled is False
