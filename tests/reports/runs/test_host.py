"""What the host refuses by itself, lets in as a probe, or sees end by other hands."""

import pytest
from tests.reports.byhand import decision, header, kv, outcome

from admitperf.reports.pages import render
from admitperf.reports.report import report

EARLY = {"by": "host", "why": "early"}
QUOTA = {"by": "host", "why": "quota"}


def early(seq, **changes):
    """A caller back before its time."""
    return decision(seq, "defer", "queue_depth", **{**EARLY, **changes})


@pytest.fixture
def quiet(reported):
    """A policy that admits everything, behind a host that refuses some by itself."""
    lines = [kv(seq, 0.1 + seq / 100) for seq in range(1, 31)]
    away = [early(seq, signals={"kv_pressure": 0.99}) for seq in range(31, 36)]
    away.append(decision(36, "reject", "rate_limit", status=429, **QUOTA))
    return reported(header(), *lines, *away)


def test_they_are_offered_and_refused_under_the_hosts_own_words(quiet):
    """The counts add up, and a reader sees who refused."""
    answers = quiet.answers
    assert (answers.offered, answers.admitted, answers.turned_away) == (36, 30, 6)
    assert (answers.deferred, answers.rejected) == (5, 1)
    assert answers.host == {"early": 5, "quota": 1}
    rows = {(row.verdict, row.reason): row.n for row in answers.rows}
    assert rows["defer", "host: early"] == 5
    assert rows["reject", "host: quota"] == 1


def test_they_are_no_firing_of_the_policy(quiet):
    """A policy that admitted all it was asked about is inert, whatever the host did."""
    assert quiet.finding.word == "INERT"
    assert quiet.answers.refused == 0
    said = " ".join(quiet.finding.says)
    assert "never answered anything but admit: 30 of 30." in said
    assert "The host refused 6 of 36 (16.7 %) by itself: early 5, quota 1." in said


def test_no_gate_is_completed_from_a_line_the_policy_never_saw(quiet):
    """A full cache at that moment is not a gate that held."""
    (gate,) = quiet.gates
    assert (gate.evaluated, gate.true, gate.value_high) == (30, 0, 0.4)


def test_a_policy_that_was_never_asked_is_unknown(reported):
    """Nothing can be said of it from refusals that were not its own."""
    run = reported(header(), *(early(seq) for seq in range(1, 5)))
    assert run.finding.word == "UNKNOWN"
    assert "The policy was never asked." in run.finding.says[0]


def test_blindness_is_a_share_of_what_the_policy_decided(reported):
    """Refusals of the host's do not thin it out."""
    dark = {"reason": "signal_absent", "blind": "signal_absent", "why": "gone"}
    lines = [early(seq) for seq in range(1, 100)]
    run = reported(header(), *lines, kv(100, 0.5, **dark), kv(101, 0.5))
    assert run.finding.word == "UNKNOWN"
    assert "blind" in run.finding.says[0]


def test_a_probe_is_a_refusal_that_was_let_in_once(reported):
    """Refused by the policy, let in by the host, and the page says so."""
    probed = kv(2, 0.95, admitted=True, status=200, probe=True)
    run = reported(header(), kv(1, 0.95), probed, kv(3, 0.5), outcome(2), outcome(3))
    answers = run.answers
    assert (answers.refused, answers.refused_enforced, answers.probes) == (2, 1, 1)
    assert (answers.turned_away, run.cost.let_in.n) == (1, 2)
    assert run.cost.refused_but_served == 0
    assert run.finding.word == "LIVE"
    assert "The host let 1 refusal in as probes." in run.finding.says


def test_who_left_and_what_the_engine_refused_did_not_fail(reported):
    """Four ways to end, each with its own count of those with an outcome."""
    ends = [
        {"ok": True},
        {"ok": False, "error": "client_closed"},
        {"ok": False, "error": "upstream_refused"},
        {"ok": False, "error": "timeout_gap"},
        {"ok": False, "finish_reason": "abort"},
    ]
    lines = [kv(seq, 0.5) for seq in range(1, 6)]
    lines += [outcome(of, **end) for of, end in enumerate(ends, 1)]
    paid = reported(header(), *lines).cost
    assert (paid.ok.n, paid.left.n, paid.engine_refused.n, paid.failed.n) == (
        1,
        1,
        1,
        2,
    )
    assert {paid.ok.of, paid.left.of, paid.engine_refused.of, paid.failed.of} == {5}
    assert paid.errors == {"abort": 1, "timeout_gap": 1}
    assert (paid.goodput.n, paid.goodput.of) == (1, 5)


@pytest.mark.parametrize("word", ["length", "max_tokens", "max_output_tokens"])
def test_an_answer_cut_at_its_limit_is_good_and_said(reported, word):
    """Of the ok ones: a short answer is fast, and a reader should know."""
    lines = [kv(seq, 0.5) for seq in range(1, 4)]
    ends = [outcome(1, finish_reason=word), outcome(2, finish_reason="stop")]
    ends.append(outcome(3, ok=False, error="x", finish_reason=word))
    cut = reported(header(), *lines, *ends).cost.truncated
    assert (cut.n, cut.of) == (1, 2)


def test_the_page_says_it_all(write):
    """Each of it in words where a person looks."""
    lines = [
        header(),
        kv(1, 0.5),
        kv(2, 0.95, admitted=True, status=200, probe=True),
        kv(3, 0.5, held_ms=120.5, added={"kv_pressure": 0.1}),
        early(4),
        outcome(1, finish_reason="length", first_text_ms=900, input_tokens=70),
        outcome(2, ok=False, error="client_closed"),
        outcome(3, ok=False, error="upstream_refused"),
    ]
    page = " ".join(render.text(report([write(*lines)])).split())
    assert "refused 1 of 4 (25.0 %) attempts, 1 turned away; the host refused 1" in page
    assert "defer host: early 1 25.0 % 1" in page
    assert "The host let 1 refusal in as probes." in page
    assert "left 1 of 3 (33.3 %) with an outcome" in page
    assert "engine refused 1 of 3 (33.3 %) with an outcome" in page
    assert "truncated 1 of 1 (100.0 %) ok" in page
    assert "0 could not be used" in page


def test_what_was_held_is_on_the_users_clock(reported):
    """Held 2 s and refused, back after 1 s and held 3 s: first token after 6.4 s."""
    call = {"facts": {"logical_id": "c"}}
    first = kv(1, 0.95, t_us=1_000_000_000, held_ms=2000, **call)
    second = kv(2, 0.5, t_us=1_004_000_000, held_ms=3000, **call)
    calls = reported(header(t_us=1), first, second, outcome(2, ttft_ms=3400)).cost
    assert calls.requests.ttft_user_ms.high == 6400
    assert calls.requests.ttft_last_ms.high == 3400
