"""What a log answers to each question, and that it does not answer more."""

import pytest
from tests.lab.advice import logs
from tests.reports.byhand import decision, kv, outcome

from admitperf.reports.questions.asked import questions
from admitperf.reports.questions.question import CANNOT_SAY, TOO_FEW


@pytest.fixture
def ask(see):
    """The questions by name, asked of lines."""

    def _ask(lines):
        return {one.name: one for one in questions(see(*lines))}

    return _ask


def answers(asked):
    """Only the answers."""
    return {name: one.answer for name, one in asked.items()}


def test_the_order_is_that_of_the_decision_tree(ask):
    """One question decides whether the next is worth asking."""
    assert list(ask(logs.slots())) == [
        "overload",
        "facts",
        "memory",
        "queue",
        "binds",
        "callers",
        "acts",
    ]


def test_taken_slots_and_an_empty_cache(ask):
    """A queue, and neither memory nor prefill behind it."""
    assert answers(ask(logs.slots())) == {
        "overload": "yes",
        "facts": "nothing",
        "memory": "no",
        "queue": "yes",
        "binds": "slots",
        "callers": CANNOT_SAY,
        "acts": "BASELINE",
    }


def test_every_answer_has_a_number_with_its_denominator(ask):
    """Counts stand beside what they are of."""
    asked = ask(logs.slots())
    assert "queue_depth was above 0 on 96 of 100 (96.0 %), at most 24." in (
        asked["overload"].says
    )
    assert asked["facts"].says[0].startswith("0 of 100 carry deadline_s, slo_class")
    assert "At 0.9 or over: 0 of 100 (0.0 %)." in asked["memory"].says
    assert "within 0.1 of its most (4) on 96 of 96 (100.0 %)" in asked["binds"].says[1]


def test_the_slo_and_goodput_stand_beside_the_queue(ask):
    """TTFT against its bound, and goodput over what was offered."""
    says = ask(logs.slots())["overload"].says
    assert any("SLO (run header): ttft_ms 1500, missed by ttft_ms" in s for s in says)
    assert any(s.startswith("Goodput over offered: ") for s in says)


@pytest.mark.parametrize(
    ("made", "name", "answer"),
    [
        (logs.memory, "memory", "yes"),
        (logs.memory, "binds", "memory"),
        (logs.prefill, "binds", "prefill"),
        (logs.reuse, "memory", "yes"),
        (logs.reuse, "overload", "no"),
        (logs.reuse, "binds", "nothing: no queue"),
        (logs.idle, "queue", "no"),
        (logs.refusing, "overload", CANNOT_SAY),
        (logs.refusing, "acts", "LIVE"),
    ],
)
def test_each_answer_has_a_log_that_gives_it(ask, made, name, answer):
    """Found in the facts and nowhere else."""
    assert answers(ask(made()))[name] == answer


def test_a_well_used_cache_is_told_from_a_full_one(ask):
    """The hit rate while it was full, and that nobody waited."""
    says = ask(logs.reuse())["memory"].says
    assert "prefix_hit_rate while full: p50 0.9, p95 0.9, max 0.9 of 1, n 100." in says
    assert says[-1].startswith("Full, and nobody waits")


def test_all_good_is_a_reason_to_leave_it(ask):
    """A queue that nobody minds."""
    lines = [logs.head()]
    lines += logs.rows(30, lambda seq: logs.row(seq, 300, queue_depth=1))
    overload = ask(lines)["overload"]
    assert overload.answer == "no"
    assert overload.says[-1].startswith("Almost all that was offered met its SLO")


def late(n, of=200, **changes):
    """Of so many answers, the first n over the SLO; a queue on all."""
    yield logs.head(**changes)
    signals = {"queue_depth": 1}
    yield from logs.rows(
        of, lambda seq: logs.row(seq, 1501 if seq <= n else 300, **signals)
    )


def test_almost_all_within_the_slo_is_no_overload(ask):
    """One in a hundred may be late; one more is overload."""
    assert ask(late(2))["overload"].answer == "no"
    assert ask(late(3))["overload"].answer == "yes"


def queued(n, of=100, **more):
    """Without an SLO: a queue on the first n."""
    yield logs.head(slo=None)
    yield from logs.rows(
        of, lambda seq: logs.row(seq, 300, queue_depth=int(seq <= n), **more)
    )


def test_without_an_slo_a_queue_counts_from_one_in_twenty_on(ask):
    """Under that it is chance, and the share is stated."""
    few, many = ask(queued(4)), ask(queued(5))
    assert (few["overload"].answer, few["queue"].answer) == ("no", "seldom")
    assert (many["overload"].answer, many["queue"].answer) == ("yes", "yes")
    assert any("under 0.05 of decisions" in one for one in few["overload"].says)


def test_without_an_slo_a_rare_but_long_wait_is_not_waved_through(ask):
    """Too rare for yes, too long for no."""
    lines = list(queued(1))
    lines[1]["signals"]["oldest_wait_s"] = 30.0
    assert ask(lines)["overload"].answer == CANNOT_SAY


@pytest.mark.parametrize("made", [logs.slots, logs.memory, logs.prefill])
def test_too_few_decisions_answer_nothing(ask, made):
    """A watch of some seconds, or a run of some requests."""
    asked = ask(made(12))
    assert {asked[name].answer for name in ("overload", "binds")} == {TOO_FEW}
    assert asked["queue"].answer == asked["memory"].answer or made is logs.prefill
    assert asked["overload"].says[0].startswith("n 12: nothing is answered from")


def test_one_session_of_few_calls_is_too_few(ask):
    """One name says nothing of the others."""
    facts = {"session": "s", "tenant": "a"}
    asked = ask([logs.head(), *logs.rows(12, lambda seq: logs.row(seq, 300, facts))])
    assert asked["callers"].answer == TOO_FEW


def test_nothing_supplied_is_never_no(ask):
    """Absence is not zero: of every question that needs a signal."""
    asked = ask([logs.head(slo=None), *(decision(seq) for seq in range(1, 31))])
    for name in ("overload", "memory", "queue", "binds", "callers"):
        assert asked[name].answer == CANNOT_SAY, name
    assert asked["memory"].says == ("kv_pressure was never supplied.",)


def test_outcomes_under_an_slo_are_enough_to_see_none(ask):
    """No signal at all, and every answer in time."""
    lines = [logs.head(), *logs.rows(30, lambda seq: logs.row(seq, 300))]
    assert ask(lines)["overload"].answer == "no"
    late = [logs.head(), *logs.rows(30, lambda seq: logs.row(seq, 1501))]
    assert ask(late)["overload"].answer == "yes"


def test_no_slo_is_said(ask):
    """A slow answer cannot be told from a quick one."""
    lines = [logs.head(slo=None), *logs.rows(30, lambda seq: logs.row(seq, 9000))]
    asked = ask(lines)
    assert asked["overload"].answer == CANNOT_SAY
    assert any("give --slo" in one for one in asked["overload"].says)


def test_an_engine_that_refuses_is_overloaded(ask):
    """What it turned away by itself is no failure and no success."""
    lines = [logs.head()]
    for seq in range(1, 31):
        refused = {"ok": False, "error": "upstream_refused", "ttft_ms": None}
        lines += [decision(seq), outcome(seq, **refused if seq % 3 == 0 else {})]
    overload = ask(lines)["overload"]
    assert overload.answer == "yes"
    assert any("refused 10 of 30 (33.3 %)" in one for one in overload.says)


def test_samples_say_nothing_of_requests(ask):
    """No facts, no TTFT, and no host to hold anybody."""
    lines = [line for line in logs.watched() if line["run"] == "samples"]
    asked = ask(lines)
    assert asked["facts"].answer == CANNOT_SAY
    assert asked["queue"].answer == "yes"
    assert any("A sample has no request" in one for one in asked["overload"].says)


def test_held_requests_are_a_queue_at_the_host(ask):
    """The engine shows none, since the host keeps it short."""
    held = {"held_ms": 400, "signals": {"queue_depth": 0}}
    asked = ask([logs.head(), *(decision(seq, **held) for seq in range(1, 31))])
    assert (asked["overload"].answer, asked["queue"].answer) == ("yes", "yes")
    assert "At the host: held 30 of 30 (100.0 %)." in asked["queue"].says


def test_a_queue_in_front_of_the_engine_is_told_from_one_in_it(ask):
    """The oldest request waits, and queue_depth shows nothing."""
    lines = [logs.head(slo=None)]
    signals = {"queue_depth": 0, "oldest_wait_s": 4.0}
    lines += logs.rows(30, lambda seq: logs.row(seq, 300, **signals))
    asked = ask(lines)
    assert (asked["overload"].answer, asked["queue"].answer) == ("yes", "yes")
    assert "in front of the" in asked["queue"].says[-1]


def test_a_wait_that_no_one_minds_is_no_overload(ask):
    """Long prompts take their time; under the SLO all of them were good."""
    lines = [logs.head()]
    signals = {"queue_depth": 0, "oldest_wait_s": 4.0}
    lines += logs.rows(30, lambda seq: logs.row(seq, 300, **signals))
    assert ask(lines)["overload"].answer == "no"


def test_the_log_s_own_policy_is_found_as_a_report_finds_it(ask):
    """Its word, its name and its sentences."""
    lines = [logs.head(policy="kv_threshold", taxonomy={}, config="kv")]
    lines += [kv(seq, 0.3) for seq in range(1, 31)]
    acts = ask(lines)["acts"]
    assert acts.answer == "INERT"
    assert acts.says[0] == "The log is of kv_threshold."
    assert any("could not have fired" in one for one in acts.says)


def test_what_a_log_names_cannot_reach_the_terminal(ask):
    """A policy's name may hold anything."""
    lines = [logs.head(policy="a\x1b[2Jb"), decision(1)]
    assert ask(lines)["acts"].says[0] == "The log is of a?[2Jb."
