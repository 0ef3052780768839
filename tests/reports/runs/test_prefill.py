"""Whether long prompts wait longer."""

import pytest
from tests.reports.byhand import decision, header, outcome

from admitperf.reports.questions.seen import looked


@pytest.fixture
def prefill(write):
    """The quarters of such pairs of prompt and TTFT."""

    def _prefill(*pairs):
        lines = [header()]
        for seq, (tokens, ttft_ms) in enumerate(pairs, 1):
            signals = {} if tokens is None else {"input_tokens": tokens}
            lines += [decision(seq, signals=signals), outcome(seq, ttft_ms=ttft_ms)]
        with looked([write(*lines)]) as found:
            return found.seen[0].prefill

    return _prefill


def test_the_quarters_are_compared_by_their_medians(prefill):
    """The shortest with the longest, of eight by four."""
    pairs = [(tokens, 2 * tokens) for tokens in range(1, 81)]
    found = prefill(*pairs)
    assert (found.n, found.short_tokens, found.long_tokens) == (80, 20, 61)
    assert (found.short_ms, found.long_ms) == (20, 140)
    assert found.grows is True


def test_an_answer_that_failed_says_nothing(write):
    """Its TTFT is not that of a prompt of its length."""
    lines = [header()]
    for seq in range(1, 21):
        made = decision(seq, signals={"input_tokens": seq})
        lines += [made, outcome(seq, ok=seq > 10, error="reset")]
    with looked([write(*lines)]) as found:
        prefill = found.seen[0].prefill
    assert (prefill.n, prefill.short_tokens) == (10, 13)


def test_a_queue_of_mixed_prompts_does_not_grow(prefill):
    """Everyone waits alike."""
    assert prefill(*[(n, 1000 + n) for n in range(1, 101)]).grows is False


def test_too_few_or_all_alike_cannot_be_compared(prefill):
    """79 outcomes, or one length of prompt."""
    assert prefill(*[(n, n) for n in range(1, 80)]).grows is None
    assert prefill(*[(7, n) for n in range(1, 101)]).grows is None


def test_without_both_numbers_there_is_none(prefill):
    """No prompt, no TTFT, or nothing at all."""
    assert prefill(*[(None, 5)] * 100) is None
    assert prefill(*[(5, None)] * 100) is None
    assert prefill() is None
