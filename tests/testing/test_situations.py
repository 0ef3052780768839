"""What the conformance kit puts a policy through."""

from admitperf.core.request import FACTS as KNOWN
from admitperf.core.request import Request
from admitperf.core.signals import ALL, ENGINE, KV_PRESSURE, UNCACHED_TOKENS
from admitperf.testing import snapshot
from admitperf.testing.situations import DAY, FACT_OF, FACTS, facts_for, raw_for


def test_the_ordinary_facts_are_all_facts_and_believable():
    """A fact that core learns has to be put into the kit too."""
    assert set(FACTS) == set(KNOWN)
    assert Request(FACTS).faults == []


def test_every_signal_of_a_request_or_a_named_caller_has_its_fact():
    """Without the fact a signal is not known: the kit has to know which one."""
    for signal in ALL:
        if signal.origin == "request":
            assert signal.read(snapshot(**FACTS)) is not None
            without = {k: v for k, v in FACTS.items() if k != FACT_OF[signal]}
            assert signal.read(snapshot(**without)) is None


def test_the_levels_supply_legal_values():
    """Quiet, middle and full engines are engines that could be."""
    for level in ("quiet", "middle", "full"):
        metrics = snapshot(raw=raw_for(ENGINE, level))
        assert all(signal.read(metrics) is not None for signal in ENGINE)
    assert raw_for([KV_PRESSURE], "full") == {"kv_pressure": 1.0}


def test_only_the_facts_that_are_asked_for_are_given():
    """A policy that needs one more than it says has to notice."""
    assert facts_for(()) == {}
    assert set(facts_for(("tenant", UNCACHED_TOKENS))) == {
        "tenant",
        "cached_tokens",
        "input_tokens",
    }


def test_every_situation_has_a_name_of_its_own():
    """A fault names the situation it was seen in."""
    labels = [label for label, _, _ in DAY]
    assert len(set(labels)) == len(labels)
