"""A request that was held was deferred at first: a firing, whatever its line says."""

import re

import pytest
from tests.reports.byhand import decision, header, kv, outcome
from tests.reports.example_pages import example

from admitperf.policies import load
from admitperf.reports.pages import render
from admitperf.reports.pages.card import card
from admitperf.reports.pages.checks import check
from admitperf.reports.pages.items import items
from admitperf.reports.report import report


def calm(n, **changes):
    """Decisions of a KV threshold that all end in admit."""
    return [kv(seq, 0.5, **changes) for seq in range(1, n + 1)]


def left(seq, **changes):
    """Held, and its caller left."""
    gone = {"by": "host", "why": "client_closed", "held_ms": 900}
    return decision(seq, "defer", "kv_pressure", **{**gone, **changes})


@pytest.fixture
def some(reported):
    """Of ten: one refused at once; of four held two let in, one refused, one left."""
    lines = [*calm(5), kv(6, 0.95)]
    lines += [kv(7, 0.5, held_ms=100), kv(8, 0.6, held_ms=300)]
    lines += [kv(9, 0.95, held_ms=2000), left(10)]
    return reported(header(), *lines, *map(outcome, (*range(1, 6), 7, 8)))


def flat(text):
    """A page as one line."""
    return " ".join(text.split())


def test_what_became_of_them_is_counted(some):
    """Let in, turned away and left add up, with how long they were held."""
    held = some.answers.held
    assert (held.n, held.let_in, held.refused, held.left) == (4, 2, 1, 1)
    assert (held.held_ms.n, held.held_ms.p50, held.held_ms.high) == (4, 300, 2000)
    assert held.held_ms.p95 is None


def test_refused_or_held_is_counted_once(some):
    """One of the refused was held before; the one who left was deferred too."""
    answers = some.answers
    assert (answers.refused, answers.acted, answers.acted_enforced) == (2, 5, 5)
    assert some.finding.word == "LIVE"
    said = "It refused 2 of 10 and held 4 of 10 (40.0 %) before starting or refusing"
    assert some.finding.says == (f"{said} them.",)


def test_who_left_was_neither_turned_away_nor_refused_by_the_host(some):
    """Nobody was there to be told anything."""
    answers = some.answers
    assert (answers.turned_away, some.cost.let_in.n, answers.held.left) == (2, 7, 1)
    assert answers.host == {}
    (row,) = (row for row in answers.rows if row.reason == "host: client_closed")
    assert (row.n, row.turned_away, row.statuses, row.retry_after_ms.n) == (1, 0, (), 0)
    assert sum(some.wait_kinds.values()) == 2


def test_a_policy_whose_deferrals_all_got_in_later_is_live(reported):
    """No line of its log is a refusal, and 44 of 70 waited all the same."""
    lines = [kv(seq, 0.5, held_ms=100 + seq) for seq in range(27, 71)]
    run = reported(header(), *calm(26), *lines)
    assert run.answers.refused == 0
    assert (run.answers.acted, run.answers.acted_enforced) == (44, 44)
    assert run.finding.word == "LIVE"
    assert "refused none of 70 and held 44 of 70 (62.9 %)" in run.finding.says[0]
    assert "could not have fired" not in " ".join(run.finding.says)


@pytest.mark.parametrize("held", [{}, {"held_ms": 0}])
def test_what_was_not_held_is_no_firing(reported, held):
    """Without the key, or held for no time at all."""
    run = reported(header(), *calm(30, **held))
    assert (run.finding.word, run.answers.acted, run.answers.held.n) == ("INERT", 0, 0)


def test_one_who_left_while_held_is_a_firing_by_itself(reported):
    """The policy was asked and said defer, although the line is the host's."""
    run = reported(header(), *(left(seq) for seq in range(1, 4)))
    assert (run.finding.word, run.answers.decided) == ("LIVE", 3)
    assert "by itself" not in " ".join(run.finding.says)


def test_one_who_left_without_being_held_is_the_hosts_alone(reported):
    """Then the policy was never asked."""
    run = reported(header(), *(left(seq, held_ms=0) for seq in range(1, 4)))
    assert (run.finding.word, run.answers.host) == ("UNKNOWN", {"client_closed": 3})


def test_without_a_header_what_was_held_shows_a_policy(reported):
    """A baseline makes nobody wait."""
    assert reported(*calm(30)).finding.word == "UNKNOWN"
    assert reported(*calm(30), kv(31, 0.5, held_ms=5)).finding.word == "LIVE"


def test_a_baseline_that_makes_requests_wait_is_none(reported):
    """It says that it refuses nothing, and it deferred."""
    run = reported(header(taxonomy={"baseline": True}), kv(1, 0.5, held_ms=5))
    assert run.finding.word == "LIVE"
    assert "It calls itself a baseline, and it is none: it fired." in run.finding.says


def test_what_the_posture_answered_in_the_end_is_not_the_policys(reported):
    """It was held, and the page says so; who deferred it cannot be said."""
    dark = {"reason": "signal_stale", "blind": "signal_stale", "why": "old"}
    run = reported(header(), *calm(200), kv(201, 0.5, held_ms=5, **dark))
    assert (run.finding.word, run.answers.acted, run.answers.held.n) == ("INERT", 0, 1)
    assert "The host held 1 of 201 (0.5 %) before it answered" in run.finding.says[-1]


def test_blind_beyond_the_bound_is_unknown_although_some_were_held(reported):
    """The finding of blindness comes first, and the held are said beside it."""
    dark = {"reason": "signal_stale", "blind": "signal_stale", "why": "old"}
    run = reported(header(), kv(1, 0.5, held_ms=5), kv(2, 0.5, **dark))
    assert run.finding.word == "UNKNOWN"
    assert "The host held 1 of 2 (50.0 %) before it answered them." in run.finding.says


def test_a_host_that_serves_what_it_refused_is_shadow_and_held_some(reported):
    """Then the outcomes are not those of running without it."""
    lines = [kv(1, 0.95), kv(2, 0.5, held_ms=5)]
    run = reported(header(), *lines, outcome(1, admitted=False), outcome(2))
    said = " ".join(run.finding.says)
    assert run.finding.word == "SHADOW"
    assert "It would have fired on 2 of 2 (100.0 %)." in said
    assert "The host held 1 of 2 (50.0 %)" in said
    assert "running without it" not in said


def test_what_was_held_but_not_governed_is_not_enforced(reported):
    """No gateway does so; a log that says so passes no check."""
    odd = kv(1, 0.5, held_ms=5, enforced=False)
    run = reported(header(enforce=0.5), odd, *(kv(seq, 0.5) for seq in range(2, 9)))
    assert run.finding.word == "LIVE"
    assert (run.answers.acted, run.answers.acted_enforced) == (1, 0)
    assert "It governed 7 of 8 (87.5 %) of the requests" in run.finding.says[1]


def test_the_page_says_it_where_a_person_looks(write, some):
    """The top, the gates, what it did, and the item on liveness."""
    page = flat(render.text(report(some.paths)))
    assert "LIVE: it refused something and made requests wait." in page
    assert "refused 2 of 10 (20.0 %) attempts, 2 turned away" in page
    assert "held 4 of 10 (40.0 %) attempts before they were answered; p50 300" in page
    assert "Of 4 held requests the gates and the signals are those of the last" in page
    assert (
        "Deferred at first and held: 4 of 10 (40.0 %) = let in 2 + turned away 1 +"
        " left while held 1; p50 300, p95 too few samples (4), max 2000 ms, n 4."
    ) in page
    assert "It fired on 5 of 10 (50.0 %), 4 held first, with the gates as last" in page


def test_a_gate_is_true_and_a_request_is_held(some):
    """One word for each on the page of a run that has both."""
    page = flat(render.text(report(some.paths)))
    assert "gate n true share min max nearest" in page
    assert "was true on 2 of 9" in page
    assert not re.search(r"(never|always) held|held on|All held", page)


def test_without_any_nothing_is_said_of_them():
    """Most hosts hold nobody."""
    assert "held" not in render.text(example("live"))


def test_a_check_and_the_items_take_it_as_fired():
    """The example's every deferral but three got in later."""
    made = example("held")
    (run,) = made.runs
    (fired, *_) = check(made).runs[0].checks
    assert fired.answer == "ok"
    assert "LIVE: It refused 3 of 70 and held 44 of 70 (62.9 %)" in fired.says
    assert items(run, made.runs)[0].answer == "pass"


def test_held_without_a_refusal_passes_check_and_item(reported, write):
    """There is no refusal to be enforced, and it acted."""
    run = reported(header(), *calm(30), kv(31, 0.5, held_ms=5))
    made = report(run.paths)
    assert check(made).runs[0].checks[0].answer == "ok"
    item = items(run, (run,))[0]
    assert item.answer == "pass"
    assert item.says.startswith("It fired on 1 of 31 (3.2 %), 1 held first,")


def test_the_card_has_them_with_their_n():
    """How many, and how long at p50 and p95."""
    said = card(example("held"), "admitperf report held.jsonl")
    assert "| held | 0.629 | 44 | 70 attempts offered |" in said
    assert "| p95 of held, ms | 2100 | 44 | attempts held |" in said
    assert "of held" not in card(example("live"), "admitperf report live.jsonl")


def test_many_runs_have_a_column_for_them_when_one_held_some(write):
    """In the list of runs, and among repeats."""
    paths = [
        write(
            header(run=f"r{n}", experiment="e", name=f"r{n}"),
            *calm(30, run=f"r{n}"),
            kv(31, 0.5, run=f"r{n}", held_ms=5),
            name=f"{n}.jsonl",
        )
        for n in range(2)
    ]
    page = flat(render.text(report(paths)))
    assert "policy and run finding held refused offered goodput" in page
    assert "kv_threshold, r1 LIVE 1 0 31 --" in page
    assert "run held offered refused goodput" in page
    assert "r1 1 31 0 -- -- -- 0" in page


def test_what_a_policy_writes_of_a_held_request_is_read_so(tmp_path):
    """Asked until it said yes, asked until the host gave up, and left meanwhile."""
    full = {"vllm:num_requests_waiting": 40}
    path = tmp_path / "run.jsonl"
    policy = load("queue_depth")(max_waiting=8, log=str(path))
    for ms in (250, 5000):
        first = policy.ask(full)
        free = {"vllm:num_requests_waiting": 3 if ms == 250 else 40}
        then = policy.ask(free, request_id=first.request_id, held_ms=ms)
        policy.answer(then, held_ms=ms)
    gone = policy.ask(full)
    policy.refuse(
        full, gone.reason, why="client_closed", verdict=gone.verdict,
        request_id=gone.request_id, held_ms=70,
    )  # fmt: skip
    policy.close()
    (run,) = report([str(path)]).runs
    held = run.answers.held
    assert (held.n, held.let_in, held.refused, held.left) == (3, 1, 1, 1)
    assert (held.held_ms.low, held.held_ms.high) == (70, 5000)
    assert (run.finding.word, run.answers.acted) == ("LIVE", 3)
