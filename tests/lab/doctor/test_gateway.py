"""What a gateway says of itself, and what the doctor makes of it."""

import json

import pytest
from tests.lab.doctor.conftest import at, said

POOL = {
    "policy": "kv_threshold",
    "parameters": {"threshold": 0.9},
    "run": "r1",
    "signals": {"kv_capacity_tokens": 100_000.0},
    "unread": {},
    "decisions": {},
}
METRICS = {
    'admitperf_build_info{version="0.1.0"}': 1,
    'admitperf_decisions_total{pool="p",verdict="admit",admitted="true"}': 90,
    'admitperf_decisions_total{pool="p",verdict="defer",admitted="false"}': 10,
    'admitperf_blind_decisions_total{pool="p"}': 0,
    'admitperf_blind{pool="p"}': 0,
    'admitperf_lost_records_total{pool="p"}': 0,
    'admitperf_lease_drift{pool="p"}': 0,
    'admitperf_engine_drift{pool="p"}': 0,
    'admitperf_expired_leases_total{pool="p"}': 0,
    'admitperf_unreadable_bodies_total{pool="p"}': 0,
    'admitperf_reading_age_seconds{pool="p",replica=""}': 0.1,
    'admitperf_up{pool="p",replica="a:1"}': 1,
}
LET_IN = 'admitperf_decisions_total{pool="p",verdict="defer",admitted="true"}'
ENGINE = """\
vllm:num_requests_running 0
vllm:num_requests_waiting 0
vllm:kv_cache_usage_perc 0.1
vllm:cache_config_info{block_size="16",num_gpu_blocks="6250"} 1
vllm:request_prompt_tokens_sum 40000
vllm:request_generation_tokens_sum 10000
vllm:request_prompt_tokens_count 50
"""


def front(pool=None, ready=(200, {"ready": True, "reasons": []}), **series):
    """The pages of a gateway of one pool, with some series changed."""
    rows = METRICS | {
        name: value for name, value in series.items() if value is not None
    }
    text = "".join(f"{name} {value}\n" for name, value in rows.items())
    state = {"pools": {"p": {**POOL, **(pool or {})}}}
    return {
        "/health": (200, "application/json", '{"status": "ok"}'),
        "/ready": (ready[0], "application/json", json.dumps(ready[1])),
        "/metrics": (200, "text/plain", text),
        "/admitperf/state": (200, "application/json", json.dumps(state)),
    }


def test_a_gateway_that_is_well_has_no_problem(doctor, pages):
    """Every check on it is fine, or could not be asked."""
    made, code = doctor("--gateway", pages(front()), "--no-probe")
    assert code == 0, made
    assert at(made, "problem", "warning") == set()


SPOILT = {
    "gateway.ready": (
        "problem",
        {"ready": (503, {"ready": False, "reasons": ["no reading yet"]})},
    ),
    "gateway.replicas": (
        "problem",
        {'admitperf_up{pool="p",replica="a:1"}': 0, "pool": {"unread": {"a:1": "401"}}},
    ),
    "gateway.fresh": (
        "problem",
        {'admitperf_reading_age_seconds{pool="p",replica=""}': 9.5},
    ),
    "gateway.blind": ("problem", {'admitperf_blind_decisions_total{pool="p"}': 40}),
    "gateway.lossless": ("problem", {'admitperf_lost_records_total{pool="p"}': 3}),
    "gateway.shadow": ("warning", {LET_IN: 10}),
    "gateway.leases": ("warning", {'admitperf_expired_leases_total{pool="p"}': 2}),
    "gateway.alone": ("warning", {'admitperf_engine_drift{pool="p"}': 7}),
    "gateway.bodies": ("warning", {'admitperf_unreadable_bodies_total{pool="p"}': 9}),
    "gateway.policy": (
        "warning",
        {"pool": {"policy": "no_admission", "parameters": {}}},
    ),
}


@pytest.mark.parametrize("check", SPOILT)
def test_what_is_wrong_with_a_gateway_is_named(doctor, pages, check):
    """Not ready, unread, old, blind, lossy, in shadow, leaking, not alone."""
    level, changes = SPOILT[check]
    made, code = doctor("--gateway", pages(front(**changes)), "--no-probe")
    assert at(made, "problem", "warning") == {check}, made
    assert check in at(made, level)
    assert code == (level == "problem")


def test_why_a_replica_is_not_read_is_repeated(doctor, pages):
    """As the gateway says it."""
    given = SPOILT["gateway.replicas"][1]
    made, _ = doctor("--gateway", pages(front(**given)), "--no-probe")
    assert "a:1: 401" in said(made, "gateway.replicas")["says"]


def reached(doctor, pages, slots, **pool):
    """What is said of the bound, on an engine that runs so many at once."""
    engine = pages({"/metrics": (200, "text/plain", ENGINE)})
    door = pages(front(pool=pool))
    words = ["--engine", engine, "--gateway", door, "--no-probe"]
    return doctor(*words, *(["--max-num-seqs", slots] if slots else []))


def test_a_bound_that_can_never_be_reached_is_named(doctor, pages):
    """50 requests of 1,000 tokens fill half of 100,000: 0.9 never comes."""
    made, code = reached(doctor, pages, 50)
    assert at(made, "problem") == {"gateway.reach"}, made
    assert "0.504" in said(made, "gateway.reach")["says"]  # in whole blocks of 16
    assert code == 1


def test_a_bound_that_can_be_reached_is_fine(doctor, pages):
    """The same with twice as many requests at once."""
    made, code = reached(doctor, pages, 100)
    assert code == 0, made
    assert "gateway.reach" in at(made, "ok")


def test_without_the_number_of_slots_nothing_is_claimed(doctor, pages):
    """No engine says it, and the option is named."""
    made, code = reached(doctor, pages, None)
    assert code == 0
    assert "--max-num-seqs" in said(made, "gateway.reach")["says"]


def test_a_bound_among_others_is_a_warning(doctor, pages):
    """A policy that has other bounds can do without this one."""
    front_door = {"policy": "front_door", "parameters": {"high_water": 0.9}}
    made, code = reached(doctor, pages, 50, **front_door)
    assert code == 0, made
    assert "gateway.reach" in at(made, "warning")


def test_the_parts_of_a_composition_are_looked_at(doctor, pages):
    """Each by its own mark."""
    parts = [{"name": "kv_threshold", "params": {"threshold": 0.9}}]
    pool = {"policy": "first_of", "parameters": {"policies": parts}}
    made, _ = reached(doctor, pages, 50, **pool)
    assert "gateway.reach" in at(made, "problem"), made


@pytest.mark.parametrize(
    "state", ["[]", '{"pools": []}', '{"pools": {"p": 3}}', "no json", '{"pools":' * 9]
)
def test_a_state_of_another_shape_is_not_believed(doctor, pages, state):
    """It is said that there is none, and nothing breaks."""
    made = front()
    made["/admitperf/state"] = (200, "application/json", state)
    found, code = doctor("--gateway", pages(made), "--no-probe")
    assert code == 0, found
    assert "gateway.state" in at(found, "not asked")


def test_a_gateway_without_a_model_is_not_probed(doctor, pages):
    """There is nothing to ask for, and it is said."""
    made, code = doctor("--gateway", pages(front()))
    assert code == 0
    assert "probe.sent" in at(made, "not asked")


@pytest.mark.parametrize(
    ("status", "check", "level"),
    [(503, "probe.refusal", "problem"), (500, "probe.answer", "problem")],
)
def test_a_probe_that_is_turned_away_is_named(doctor, pages, status, check, level):
    """A refusal without a wait, and an error."""
    given = front()
    given["/v1/models"] = (200, "application/json", '{"data": [{"id": "m"}]}')
    given["/v1/chat/completions"] = (status, "application/json", "{}")
    made, code = doctor("--gateway", pages(given))
    assert check in at(made, level), made
    assert "probe.headers-back" in at(made, "problem")
    assert code == 1


def test_numbers_that_are_none_break_nothing(doctor, pages):
    """A page of NaN and infinities, and a state of numbers too large."""
    odd = dict.fromkeys(METRICS, "NaN") | {LET_IN: "+Inf"}
    pool = {"signals": {"kv_capacity_tokens": float("inf")}}
    words = ["--gateway", pages(front(pool=pool, **odd)), "--no-probe"]
    made, code = doctor(*words, "--max-num-seqs", 4)
    assert code == 0, made
    assert "gateway.reach" in at(made, "not asked")
