"""I10: admission never reads the true output length."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.invariants.histories import histories, play, watched

from admitperf.core.facts import Facts
from admitperf.core.signals import ALL


def test_i10_no_fact_and_no_signal_carries_the_length_of_an_answer():
    """I10: the only length a decision knows is the bound the caller set."""
    names = {*Facts.__annotations__, *(signal.name for signal in ALL)}
    assert {name for name in names if "output" in name} == {"max_output_tokens"}


@given(history=histories(), length=st.integers(0, 4_000))
@settings(deadline=None, max_examples=50)
def test_i10_a_host_that_tells_it_all_the_same_changes_nothing(
    policy_class, history, length
):
    """I10: a length handed in beside the facts is not known to any policy."""

    def told(step):
        kind, *rest = step
        if kind != "ask":
            return step
        raw, facts = rest
        return kind, raw, {**facts, "output_tokens": length}

    plain, telling = (
        play(*watched(policy_class)[:2], steps)
        for steps in (history, [told(step) for step in history])
    )
    assert [d.verdict for d, _ in plain.asked] == [d.verdict for d, _ in telling.asked]
    assert [d.reason for d, _ in plain.asked] == [d.reason for d, _ in telling.asked]
