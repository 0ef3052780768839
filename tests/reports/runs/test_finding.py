"""Could it have fired: one word, and what stands behind it."""

import json

import pytest
from tests.reports.byhand import (
    START_US,
    decision,
    header,
    kv,
    lost,
    outcome,
    reading,
)

BLIND = {
    "reason": "signal_absent",
    "blind": "signal_absent",
    "why": "kv_pressure is not supplied",
}
BASELINE = {
    "policy": "no_admission",
    "requires": [],
    "taxonomy": {"baseline": True},
}


@pytest.fixture(scope="session")
def states(shared):
    """The engine states of s-bm-11: KV at most 0.44 while the queue reaches 60."""
    path = shared / "cases" / "s-bm-11" / "states.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def found(reported):
    """The finding on a run of the given lines: its word, and its sentences as one."""

    def _found(*lines):
        finding = reported(*lines).finding
        return finding.word, " ".join(finding.says)

    return _found


def many(n, pressure=0.5, **changes):
    """Decisions of a KV threshold that never fires."""
    return [kv(seq, pressure, **changes) for seq in range(1, n + 1)]


def test_s_bm_11_a_threshold_that_was_out_of_reach_is_inert(found, states):
    """INERT: it could not have fired, with the range beside the bound and the queue."""
    word, says = found(
        header(),
        *(
            kv(seq, state["kv_pressure"], signals={"queue_depth": state["queue_depth"]})
            for seq, state in enumerate(states, 1)
        ),
    )
    assert word == "INERT"
    assert "could not have fired" in says
    assert "kv_pressure >= 0.9 was never true (0.07 to 0.44, n 3600)" in says
    assert "0.46 from the bound" in says
    assert "queue_depth went from 0 to 60" in says


def test_s_bm_11_without_the_kv_column_nothing_can_be_said(found, states):
    """UNKNOWN: the signal was never supplied; it is not called INERT."""
    word, says = found(
        header(),
        *(
            decision(seq, signals={"queue_depth": state["queue_depth"]}, **BLIND)
            for seq, state in enumerate(states, 1)
        ),
    )
    assert word == "UNKNOWN"
    assert "3600 of 3600 (100.0 %)" in says
    assert "kv_pressure was never supplied" in says
    assert "queue_depth went from 0 to 60" in says
    assert "could not have fired" not in says


@pytest.mark.parametrize(
    ("n", "pressure", "said"),
    [
        (1, 0.5, "It did not come near in this log (n=1): no gate ever changed"),
        (19, 0.5, "It did not come near in this log (n=19): no gate"),
        (19, 0.85, "It came near and did not fire in this log (n=19): no gate"),
        (20, 0.5, "It could not have fired: no gate ever changed its answer."),
    ],
)
def test_a_few_decisions_do_not_show_that_it_could_not(found, n, pressure, said):
    """INERT all the same; what is claimed of it follows from how much was seen."""
    word, says = found(header(), *many(n, pressure))
    assert word == "INERT"
    assert said in says
    assert ("could not have fired" in says) is (n >= 20)


def test_a_bound_of_nothing_is_near_only_when_it_is_met(found):
    """A tenth of 0 is 0: one waiting is not near a gate at none."""
    for value, near in ((0, True), (1, False)):
        gate = ["queue_depth", value, "<", 0, False]
        line = decision(1, signals={"queue_depth": value}, gates=[gate])
        _, says = found(header(requires=[]), line)
        assert ("came near" in says) is near


def test_a_blind_run_says_since_when_and_what_might_be_mapped(found):
    """The raw names that look like the signal, from readings and from decisions."""
    lines = [
        reading(1, {'acme:kv_cache_used{engine="0"}': 0.4, "kv_pressure_total": 7}),
        kv(1, 0.5, signals={"kv_pressure": None}, gates=[]),
        *(decision(seq, reading=1, **BLIND) for seq in range(11, 40)),
        decision(40, raw={"acme_kv_blocks_used": 1}, sources={}, **BLIND),
    ]
    word, says = found(header(), *lines)
    assert word == "UNKNOWN"
    assert "Blind decisions: from 2026-09-21 14:13:21Z to 14:13:24Z." in says
    assert "kv_pressure was never supplied. Nearest raw names in the log: " in says
    for name in ("acme_kv_cache_used", "acme_kv_blocks_used"):
        assert name in says
    assert "_total" not in says


def test_the_names_of_every_process_are_looked_through(found):
    """Two processes, one run: the second one's metrics help as well."""
    other = {"run": "other", "t_us": START_US + 60_000_000}
    word, says = found(
        header(),
        decision(1, **BLIND),
        header(**other),
        reading(1, {"acme_kv_cache_used": 1}, run="other"),
        decision(1, **BLIND, **other),
    )
    assert word == "UNKNOWN"
    assert "from 2026-09-21 14:13:20Z to 14:14:20Z" in says
    assert "acme_kv_cache_used" in says


def test_a_blind_policy_that_states_no_requirements_is_helped_too(found):
    """The first blind decision says which signal it missed."""
    lines = [decision(seq, raw={"acme_kv_used": 1}, **BLIND) for seq in range(1, 9)]
    _, says = found(header(requires=[]), *lines)
    assert "kv_pressure was never supplied. Nearest raw names in the log: acme" in says
    seen = [kv(seq, 0.5) for seq in range(11, 20)]
    word, says = found(header(requires=[]), *seen, *lines)
    assert word == "UNKNOWN"
    assert "never supplied" not in says
    _, says = found(header(requires=[]), decision(1, **{**BLIND, "why": "no data"}))
    assert "never supplied" not in says


def test_a_series_that_is_there_and_not_usable_gets_no_other_name(found):
    """43 under the right name is no reason to map a wrong one."""
    signals = {"kv_pressure": {"value": None, "absent": "kv_pressure{} = 43"}}
    page = reading(1, {"acme_kv_used": 43}, signals=signals)
    _, says = found(header(), page, decision(1, reading=1, **BLIND))
    assert "kv_pressure was never supplied: kv_pressure{} = 43." in says
    assert "Nearest" not in says


def test_a_refusal_makes_a_run_live(found):
    """LIVE, with how often, of how many."""
    word, says = found(header(), *many(3), kv(4, 0.95))
    assert word == "LIVE"
    assert "1 of 4 (25.0 %)" in says


def test_an_empty_run_is_unknown(found):
    """A run line alone: no policy ran."""
    word, says = found(header())
    assert word == "UNKNOWN"
    assert "no decision" in says


def test_a_baseline_is_a_baseline_in_shadow_too(found):
    """It refuses nothing by design, whether or not it is enforced."""
    lines = [decision(seq, enforced=False) for seq in range(1, 4)]
    for enforce in (0.0, 1.0):
        word, says = found(header(enforce=enforce, **BASELINE), *lines, outcome(1))
        assert word == "BASELINE"
        assert "3 of 3 (100.0 %)" in says


def test_a_baseline_that_refuses_is_none(found):
    """The log's word on the policy is not believed against its own decisions."""
    word, says = found(header(**BASELINE), *many(3), kv(4, 0.95))
    assert word == "LIVE"
    assert "none" in says


@pytest.mark.parametrize(("blind", "word"), [(1, "LIVE"), (2, "UNKNOWN")])
def test_over_one_percent_blind_is_unknown_never_a_win(found, blind, word):
    """1 % is tolerated, more is not, and the share is printed."""
    lines = [kv(seq, 0.95 if seq == 50 else 0.5) for seq in range(1, 101 - blind)]
    lines += [decision(seq, **BLIND) for seq in range(101 - blind, 101)]
    got, says = found(header(), *lines)
    assert got == word
    assert ("2 of 100 (2.0 %)" in says) is (word == "UNKNOWN")


def test_a_refusal_of_the_blind_posture_is_not_the_policys(found):
    """A posture that refuses does not make a policy that never fired LIVE."""
    lines = [*many(199), decision(200, "reject", **BLIND)]
    word, says = found(header(), *lines)
    assert word == "INERT"
    assert "1 refused by its blind posture" in says


def test_a_required_signal_that_never_came_is_unknown(found):
    """Whatever the policy made of it, the log cannot say what it would have done."""
    lines = [
        reading(
            1, {}, signals={"kv_pressure": {"value": None, "absent": "out of range"}}
        ),
        *(decision(seq, signals={"queue_depth": seq}) for seq in range(1, 30)),
    ]
    word, says = found(header(), *lines)
    assert word == "UNKNOWN"
    assert "kv_pressure was never supplied: out of range." in says


def test_a_required_fact_that_some_requests_carried_was_supplied(found):
    """A fact is not a signal: it is looked for among the facts."""
    lines = [*many(5), kv(6, 0.5, facts={"tenant": "a"})]
    assert found(header(requires=["kv_pressure", "tenant"]), *lines)[0] == "INERT"


def test_a_compared_signal_that_often_failed_is_unknown(found):
    """A gate that could not be evaluated on over 1 % is not read as headroom."""
    missing = [["kv_pressure", None, ">=", 0.9, False]]
    lines = [*many(90), *(decision(seq, gates=missing) for seq in range(91, 101))]
    word, says = found(header(), *lines)
    assert word == "UNKNOWN"
    assert "10 of 100 (10.0 %)" in says


def test_one_gate_of_two_never_supplied_does_not_undo_a_refusal(found):
    """It fired, which is certain; that one half could not is said."""
    never = ["gpu_util", None, ">=", 0.99, False]
    lines = [
        kv(seq, 0.95, gates=[["kv_pressure", 0.95, ">=", 0.9, True], never])
        for seq in range(1, 5)
    ]
    word, says = found(header(), *lines)
    assert word == "LIVE"
    assert "gpu_util was never supplied" in says


def test_declared_shadow_says_would_have(found):
    """enforce=0: nothing was enforced, and the count is what would have been."""
    lines = [
        *many(3, enforced=False),
        kv(4, 0.95, enforced=False, admitted=True, status=200),
    ]
    word, says = found(header(enforce=0.0), *lines)
    assert word == "SHADOW"
    assert "Nothing was enforced (enforce=0)" in says
    assert "would have fired on 1 of 4 (25.0 %)" in says


def test_shadow_that_would_not_have_fired_says_how_far_it_stayed(found):
    """0 of n, and the distance, as for an inert run."""
    word, says = found(header(enforce=0.0), *many(3, enforced=False))
    assert word == "SHADOW"
    assert "0 of 3" in says
    assert "0.4 from the bound" in says


def test_a_split_that_governed_nobody_is_shadow(found):
    """A small share of few requests may be none: then nothing was enforced either."""
    free = {"enforced": False, "admitted": True, "status": 200}
    word, says = found(header(enforce=0.01), kv(1, 0.95, **free), kv(2, 0.5, **free))
    assert word == "SHADOW"
    assert "Nothing was enforced (enforce=0.01)" in says


def test_an_outcome_for_a_refused_request_marks_the_run_shadow(found):
    """The host ignored the verdict, whatever it declared."""
    lines = [*many(3), kv(4, 0.95), outcome(4, admitted=False)]
    word, says = found(header(), *lines)
    assert word == "SHADOW"
    assert "served 1 request that it refused" in says


def test_a_split_is_live_and_says_how_much_it_governed(found):
    """Half governed: the finding counts what it said, and what was enforced."""
    lines = [
        kv(1, 0.95),
        kv(2, 0.95, enforced=False, admitted=True, status=200),
        kv(3, 0.5),
        kv(4, 0.5, enforced=False),
    ]
    word, says = found(header(enforce=0.5), *lines, outcome(2))
    assert word == "LIVE"
    assert "governed 2 of 4 (50.0 %)" in says
    assert "1 of 2 (50.0 %) of its refusals were enforced" in says


def test_a_gate_that_was_true_without_a_refusal_is_not_out_of_reach(found):
    """Half of a dual gate was true: that is not `could not have fired`."""
    lines = [
        decision(
            seq,
            signals={"kv_pressure": 0.95 if seq % 2 else 0.2, "queue_depth": 3},
            gates=[
                ["kv_pressure", 0.95, ">=", 0.9, True],
                ["queue_depth", 3, ">", 32, False],
            ]
            if seq % 2
            else [["kv_pressure", 0.2, ">=", 0.9, False]],
        )
        for seq in range(1, 11)
    ]
    word, says = found(header(), *lines)
    assert word == "INERT"
    assert "could not have fired" not in says
    assert "kv_pressure >= 0.9 was true on 5 of 10 (50.0 %)" in says
    assert "All were true at once on 0 of 10" in says
    assert "queue_depth > 32 was never true (3 to 3, n 10)" in says


def test_an_inert_run_without_gates_says_that_it_cannot_say_how_near(found):
    """A policy that recorded no comparison gets no distance."""
    word, says = found(header(requires=[]), decision(1), decision(2))
    assert word == "INERT"
    assert "how near it came cannot be said" in says
    assert "No signal moved" in says


def test_without_a_run_line_a_run_that_admits_all_is_unknown(found):
    """It may have been a baseline; a refusal settles it."""
    assert found(*many(3))[0] == "UNKNOWN"
    assert found(*many(3), kv(4, 0.95))[0] == "LIVE"


@pytest.mark.parametrize(("missing", "word"), [(1, "INERT"), (2, "UNKNOWN")])
def test_lost_decisions_may_have_been_refusals(found, missing, word):
    """Over 1 % lost, `never answered anything but admit` is not claimed."""
    got, says = found(header(), *many(99), lost(decision=missing))
    assert got == word
    assert f"{missing} of {99 + missing}" in says


WATCHED = {"basis": "samples", "enforce": 0.0}


def test_samples_end_with_that_no_policy_governed(found):
    """A watched engine: what would have been, of how many samples, and how near."""
    lines = [
        *many(3, enforced=False),
        kv(4, 0.95, enforced=False, admitted=True, status=200),
    ]
    word, says = found(header(**WATCHED), *lines)
    assert word == "SHADOW"
    assert "It would have fired on 1 of 4 (25.0 %) samples." in says
    assert "kv_pressure >= 0.9 was true on 1 of 4 (25.0 %) (0.5 to 0.95, n 4)." in says
    assert says.endswith("No policy governed.")
    assert "request" not in says
    assert "enforce" not in says


@pytest.mark.parametrize(
    ("lines", "word", "said"),
    [
        ([], "UNKNOWN", "There is no sample in the log."),
        (many(30, enforced=False), "SHADOW", "0 of 30 (0.0 %) samples"),
        (many(30), "SHADOW", "0.4 from the bound"),
        ([decision(n, **BLIND) for n in (1, 2)], "UNKNOWN", "2 of 2 (100.0 %) samples"),
    ],
)
def test_every_finding_on_samples_says_so(found, lines, word, said):
    """Whatever the word is."""
    got, says = found(header(**WATCHED), *lines)
    assert got == word
    assert said in says
    assert says.endswith("No policy governed.")


def test_a_baseline_on_samples_is_a_baseline(found):
    """It refuses nothing, watched or not."""
    word, says = found(header(**WATCHED, **BASELINE), decision(1, enforced=False))
    assert word == "BASELINE"
    assert "1 of 1 (100.0 %) samples" in says
