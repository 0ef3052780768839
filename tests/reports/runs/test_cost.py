"""What it cost: goodput over offered, and each number with its denominator."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reports.byhand import decision, header, jsonl, kv, outcome

from admitperf.reports.report import report
from admitperf.reports.runs.slo import Slo

SLO = {"ttft_ms": 500, "stall_ms": 500}


def from_case(shared, name, **slo):
    """A case's request rows as decisions and outcomes."""
    path = shared / "cases" / name / "requests.jsonl"
    yield header(slo=slo or None)
    for seq, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        row = json.loads(text)
        refused = row["decision"] != "admit"
        yield decision(seq, row["decision"], "queue_depth" if refused else None)
        if not refused:
            numbers = {
                k: row[k] for k in ("ttft_ms", "max_gap_ms", "e2e_ms") if k in row
            }
            bare = {"ttft_ms": None, "max_gap_ms": None, "e2e_ms": None}
            yield outcome(seq, ok=row["ok"], **{**bare, **numbers})


def test_s_bm_01_goodput_divides_by_what_was_offered(reported, shared):
    """0.05 of 1,000 offered; attainment 1.0 stands beside it with its own n."""
    paid = reported(*from_case(shared, "s-bm-01", ttft_ms=500)).cost
    assert (paid.goodput.n, paid.goodput.of, paid.goodput.value) == (50, 1000, 0.05)
    assert (paid.attained.n, paid.attained.of) == (50, 50)
    assert paid.let_in.value == 0.05


def test_s_bm_02_streams_that_fail_are_not_fast(reported, shared):
    """Latency comes from the 80 good ones; goodput is 40 of 100."""
    paid = reported(*from_case(shared, "s-bm-02", ttft_ms=500)).cost
    assert (paid.ok.n, paid.ok.of) == (80, 100)
    assert (paid.ttft_ms.n, paid.ttft_ms.p50, paid.ttft_ms.p95) == (80, 490, 590)
    assert (paid.goodput.n, paid.goodput.of) == (40, 100)


def test_without_outcomes_goodput_cannot_be_answered(reported):
    """It is None, not zero."""
    paid = reported(header(slo=SLO), kv(1, 0.5)).cost
    assert paid.goodput is None
    assert paid.attained is None
    assert paid.ttft_ms.n == 0


def test_without_an_slo_ok_alone_counts(reported):
    """And the report says so by naming none."""
    paid = reported(header(), kv(1, 0.5), outcome(1, ttft_ms=90_000)).cost
    assert paid.goodput.value == 1.0
    assert (paid.slo, paid.slo_origin) == ("", "")


def test_the_option_takes_the_place_of_the_header(reported):
    """--slo wins, and is named as the origin."""
    slo = Slo.parsed("ttft_ms=100")
    paid = reported(header(slo=SLO), kv(1, 0.5), outcome(1), slo=slo).cost
    assert (paid.goodput.n, paid.slo_origin) == (0, "--slo")
    assert paid.missed == {"ttft_ms": 1}


@pytest.mark.parametrize(
    ("changes", "missed"),
    [
        ({"ttft_ms": 500, "max_gap_ms": 500}, {}),
        ({"ttft_ms": 500.1}, {"ttft_ms": 1}),
        ({"max_gap_ms": 501}, {"stall_ms": 1}),
        ({"ttft_ms": 501, "max_gap_ms": 501}, {"ttft_ms": 1}),
        ({"ttft_ms": 1, "ok": False}, {}),
    ],
)
def test_a_request_must_start_on_time_and_never_stall(reported, changes, missed):
    """A bound is met when it is reached, missed when it is passed."""
    paid = reported(header(slo=SLO), kv(1, 0.5), outcome(1, **changes)).cost
    assert paid.missed == missed
    good = changes.get("ok", True) and not missed
    assert paid.goodput.n == int(good)


def test_a_number_that_is_missing_counts_as_not_met_and_is_said(reported):
    """Absence is never a met bound; a bound that was missed for sure comes first."""
    paid = reported(
        header(slo=SLO),
        kv(1, 0.5),
        kv(2, 0.5),
        kv(3, 0.5),
        outcome(1, max_gap_ms=None),
        outcome(2, ttft_ms=900, max_gap_ms=None),
        outcome(3, ttft_ms=None, max_gap_ms=None),
    ).cost
    assert paid.goodput.n == 0
    assert paid.unjudged == {"no max_gap_ms": 1, "no ttft_ms": 1}
    assert paid.missed == {"ttft_ms": 1}
    assert paid.at_least


def test_an_answer_that_is_not_streamed_is_judged_by_its_end(reported):
    """Its caller sees nothing before e2e_ms, and there are no gaps to stall in."""
    facts = {"facts": {"stream": False}}
    paid = reported(
        header(slo=SLO),
        kv(1, 0.5, **facts),
        kv(2, 0.5, **facts),
        outcome(1, ttft_ms=None, max_gap_ms=None, e2e_ms=400),
        outcome(2, ttft_ms=10, max_gap_ms=None, e2e_ms=600),
    ).cost
    assert (paid.goodput.n, paid.missed, paid.by_e2e) == (1, {"ttft_ms": 1}, 2)


def test_each_class_is_judged_by_its_own_bounds(reported):
    """A class without bounds is judged by ok alone, and counted."""
    slo = {"chat": {"ttft_ms": 300}, "batch": {"ttft_ms": 9000}}
    paid = reported(
        header(slo=slo),
        *(
            kv(n, 0.5, facts={"slo_class": c})
            for n, c in enumerate(("chat", "batch"), 1)
        ),
        kv(3, 0.5),
        *(outcome(n) for n in (1, 2, 3)),
    ).cost
    assert (paid.goodput.n, paid.goodput.of) == (2, 3)
    assert paid.ok_alone == 1
    assert paid.slo == "chat: ttft_ms 300; batch: ttft_ms 9000"


def test_processes_keep_their_own_classes_and_outcomes(reported):
    """Two processes met the classes in another order; each is judged as its own."""
    slo = {"chat": {"ttft_ms": 300}, "batch": {"ttft_ms": 9000}}
    paid = reported(
        header(slo=slo),
        kv(1, 0.5, facts={"slo_class": "chat"}),
        kv(2, 0.5, facts={"slo_class": "batch"}),
        header(slo=slo, run="other"),
        kv(1, 0.5, run="other", facts={"slo_class": "batch"}),
        kv(2, 0.95, run="other", facts={"slo_class": "chat"}),
        kv(3, 0.5, run="other", facts={"slo_class": "chat"}),
        outcome(1, run="other", ttft_ms=400),
        outcome(3, run="other", ttft_ms=200),
    ).cost
    assert (paid.goodput.n, paid.goodput.of) == (2, 5)
    assert paid.refused_but_served == 0
    assert (paid.reported.n, paid.reported.of) == (2, 4)


def test_outcomes_that_never_came_make_goodput_a_lower_bound(reported):
    """One of two let in has no outcome: goodput is at least 0.5."""
    paid = reported(header(), kv(1, 0.5), kv(2, 0.5), outcome(1)).cost
    assert (paid.reported.n, paid.reported.of) == (1, 2)
    assert paid.at_least
    assert paid.goodput.value == 0.5


def test_attempts_are_not_requests(reported):
    """One call refused twice, then served: 3 attempts, 1 request, both said."""
    call = {"facts": {"logical_id": "call"}}
    paid = reported(
        header(),
        kv(1, 0.95, **call),
        kv(2, 0.95, **call),
        kv(3, 0.5, **call),
        outcome(3),
    ).cost
    assert paid.offered == 3
    assert paid.requests.offered == 1
    assert (paid.goodput.n, paid.goodput.of) == (1, 3)
    assert (paid.requests.goodput.n, paid.requests.goodput.of) == (1, 1)
    assert (paid.requests.let_in.n, paid.requests.let_in.of) == (1, 1)


def test_attempts_without_a_logical_id_stand_for_a_request_each(reported):
    """And how many they are is said; without any id there is no count of requests."""
    call = {"facts": {"logical_id": "call"}}
    paid = reported(header(), kv(1, 0.95, **call), kv(2, 0.5, **call), kv(3, 0.5)).cost
    assert (paid.requests.offered, paid.requests.without_id) == (2, 1)
    assert reported(header(), kv(1, 0.5)).cost.requests is None


def test_what_was_refused_and_served_is_let_in(reported):
    """The host ignored the answer: it counts as let in, so goodput stays below it."""
    paid = reported(header(), kv(1, 0.95), kv(2, 0.95), outcome(1, admitted=False)).cost
    assert paid.refused_but_served == 1
    assert (paid.let_in.n, paid.goodput.n) == (1, 1)


@pytest.mark.parametrize(
    "text",
    ["", "ttft_ms", "ttft_ms=", "ttft_ms=soon", "ttft_ms=-1", "ttft_ms=inf", "p95=3"],
)
def test_bounds_that_make_no_sense_are_refused(text):
    """Each names what it wants."""
    with pytest.raises(ValueError, match="ttft_ms"):
        Slo.parsed(text)


ROW = st.tuples(
    st.sampled_from(["admit", "defer", "reject"]),
    st.booleans(),  # governed
    st.sampled_from([None, "signal_stale"]),
    st.sampled_from([None, True, False]),  # outcome: none, ok, not ok
    st.none() | st.integers(0, 1000),  # ttft
    st.sampled_from([None, "a", "b", "c"]),  # logical id
)


@given(st.lists(ROW, max_size=40))
@settings(deadline=None, max_examples=50)
def test_i1_and_i3_hold_for_any_run(tmp_path_factory, rows):
    """Offered = admitted + deferred + refused; goodput <= let-in share <= 1."""
    lines = [header(slo={"ttft_ms": 500})]
    for seq, (verdict, governed, blind, ended, ttft, call) in enumerate(rows, 1):
        changes = {"enforced": governed, "admitted": verdict == "admit" or not governed}
        if blind:
            changes |= {"blind": blind}
        if call:
            changes |= {"facts": {"logical_id": call}}
        reason = None if verdict == "admit" and not blind else "kv_pressure"
        lines.append({**decision(seq, verdict, reason), **changes})
        if ended is not None:
            lines.append(outcome(seq, ok=ended, ttft_ms=ttft))
    path = tmp_path_factory.mktemp("i") / "run.jsonl"
    path.write_text(jsonl(*lines), encoding="utf-8")
    (run,) = report([str(path)]).runs
    answers, paid = run.answers, run.cost
    assert answers.offered == len(rows)
    assert answers.offered == answers.admitted + answers.deferred + answers.rejected
    assert answers.offered == sum(row.n for row in answers.rows)
    shares = [(paid.goodput, paid.let_in)]
    if paid.requests is not None:
        shares.append((paid.requests.goodput, paid.requests.let_in))
    for goodput, let_in in shares:
        assert let_in.n <= let_in.of
        if goodput is not None:
            assert goodput.of == let_in.of
            assert goodput.n <= let_in.n


@pytest.mark.parametrize("field", ["ttft_ms", "max_gap_ms", "e2e_ms"])
def test_a_time_before_the_request_is_no_outcome(write, field):
    """A negative time would be the best of all."""
    path = write(header(), decision(1), outcome(1, **{field: -5}), decision(2))
    made = report([path])
    assert made.files.unusable == {f"outcome line with an unusable {field}": 1}
    assert made.runs[0].cost.reported.n == 0


def test_nothing_is_sent_before_it_is_due(write):
    """A negative lateness would shorten every time that is counted from there."""
    path = write(header(), decision(1, facts={"late_ms": -100}), decision(2))
    made = report([path])
    assert made.files.unusable == {"decision line with an unusable facts": 1}
