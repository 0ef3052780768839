"""I4, I6: what a line says is what happened, when it happened."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.invariants.histories import histories, play, watched

from admitperf.policies.kv_threshold import KvThreshold

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=100)


@given(history=histories(), steps=st.lists(st.floats(-1e6, 1e6), min_size=1))
@settings(deadline=None, max_examples=50)
def test_i4_time_never_goes_back(policy_class, history, steps):
    """I4: set the wall clock as you like, the lines' times only grow."""
    policy, clock, log = watched(policy_class)
    jumps = iter(steps * 50)

    def jump(_played):
        clock.set_wall(1_700_000_000.0 + next(jumps))

    play(policy, clock, history, before_each=jump)
    times = [line["t_us"] for line in log.lines]
    assert times == sorted(times)


@given(
    history=histories(),
    names=st.fixed_dictionaries({"tenant": TEXT, "session": TEXT, "model": TEXT}),
    tokens=st.integers(0, 1 << 53),
    request_id=TEXT,
)
@settings(deadline=None, max_examples=50)
def test_i6_a_line_reads_back_as_what_was_decided(history, names, tokens, request_id):
    """I6: verdict, reason, status, id and facts survive the way through the log."""
    policy, clock, log = watched(KvThreshold)
    facts = {**names, "input_tokens": tokens}
    decision = policy({"kv_cache_usage_perc": 0.95}, request_id=request_id, **facts)
    line = log.decisions[0]
    assert (line["verdict"], line["reason"]) == (decision.verdict, decision.reason)
    assert (line["admitted"], line["status"]) == (decision.admitted, decision.status)
    assert (line["id"], line["facts"]) == (request_id, facts)
    played = play(policy, clock, history)
    for (decided, _), written in zip(played.asked, log.decisions[1:], strict=True):
        assert written["id"] == decided.request_id
        assert written["verdict"] == decided.verdict
        assert written["reason"] == decided.reason
