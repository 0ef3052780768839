"""Every line is strict JSON and says what was decided."""

import json

import jsonschema
import pytest
from tests.core.rules import (
    QUIET,
    admits,
    defers,
    reading,
    rejects,
    rule,
    strict,
    wall,
)

NASTY = [
    'quote " and \\ back', "new\nline\r\ttab", "\x00\x01\x1f\x7f", "\u2028\u2029",
    "名前 🙂", "\udc80\udfff", "</script>", "NaN", "", " ", '{"k":"run"}', "\ufeff",
]  # fmt: skip


@pytest.fixture(scope="module")
def schema(root):
    """Checks a line against the page of its kind."""
    folder = root / "docs" / "reference" / "log"
    schemas = {
        path.name.partition(".")[0]: json.loads(path.read_text("utf-8"))
        for path in folder.glob("*.schema.json")
    }

    def check(line):
        jsonschema.validate(line, schemas[line["k"]])

    return check


def everything(log, clock, **given):
    """One policy through all there is to write down."""
    answers = iter(
        [
            lambda p, m: p.admit(),
            lambda p, m: p.defer("queue_depth"),
            lambda p, m: p.defer("slots", retry_after_ms=0.5),
            lambda p, m: p.reject("too_large"),
            lambda p, m: p.reject("pool_saturated", estimate_ms=20_000),
            lambda p, m: m.gate('na"me', float("nan"), float("inf")) or p.admit(),
            lambda p, m: 1 / 0,
        ]
    )

    def decide(policy, metrics):
        return next(answers)(policy, metrics)

    policy = rule(decide, log=log, clock=clock, **given)
    for n in range(7):
        raw = {"kv_pressure": n / 10, "queue_depth": -1.0, "x": float("nan")}
        d = policy(
            reading(clock, raw, replica="r1"), request_id=f"r{n}", tenant=NASTY[n],
            session="s", input_tokens=1 << 53, deadline_s=1e-9, nonsense=1,
        )  # fmt: skip
        policy.outcome(d.request_id, ok=False, error=NASTY[n], ttft_ms=1e-9)
        policy.outcome(d.request_id)
        clock.advance(0.4)
    return policy


@pytest.mark.parametrize("raw", ["inline", "reference"])
def test_every_line_follows_its_schema(raw, log, clock, schema):
    """What the reference page promises about each kind holds for what is written."""
    everything(log, clock, raw=raw)
    kinds = set()
    for text in log.texts:
        line = strict(text)
        schema(line)
        kinds.add(line["k"])
    assert kinds == {"decision", "outcome", "control"}


def test_a_whole_file_follows_the_schemas(tmp_path, clock, schema):
    """Header, readings and everything else, as they stand in a file."""
    path = tmp_path / "log.jsonl"
    everything(path, clock, raw="reference").close()
    lines = [strict(text) for text in path.read_text("ascii").splitlines()]
    for line in lines:
        schema(line)
    assert {line["k"] for line in lines} == {
        "run", "reading", "decision", "outcome", "control",
    }  # fmt: skip


@pytest.mark.parametrize("text", NASTY, ids=ascii)
def test_any_text_survives_on_any_line(text, log):
    """In ids, facts, errors and reasons, with lone surrogates made harmless."""
    plain = text.encode("utf-8", "backslashreplace").decode("utf-8")
    policy = rule(admits, log=log)
    policy({text: 0.5}, request_id=text, tenant=text, model=text)
    policy.outcome(text, finish_reason=text, error=text)
    decision, outcome = (strict(line) for line in log.texts)
    assert (decision["id"], outcome["id"]) == (plain, plain)
    assert decision["facts"] == {"tenant": plain, "model": plain}
    assert decision["raw"] == {plain: 0.5}
    assert (outcome["finish_reason"], outcome["error"]) == (plain, plain)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0.1, 0.1), (1e-300, 1e-300), (5, 5), (1 << 62, 1 << 62), (1 << 64, 2.0**64),
        (10**400, None), (float("nan"), None), (float("inf"), None), (-0.0, -0.0),
    ],
)  # fmt: skip
def test_raw_metrics_are_written_as_numbers_any_reader_takes(value, written, log):
    """What is not finite is null, and what is longer than 64 bits is a float."""
    rule(admits, log=log, raw="inline")({"m": value})
    assert strict(log.texts[0])["raw"] == {"m": written}


def test_what_is_no_number_is_left_out_of_the_raw_metrics(log):
    """Text and flags are no metrics; numbers of other libraries are."""
    from decimal import Decimal

    raw = {"t": "x", "b": True, "n": None, "o": object(), 7: 1.0, "d": Decimal("0.5")}
    rule(admits, log=log, raw="inline")(raw)
    assert strict(log.texts[0])["raw"] == {"d": 0.5}


def test_a_line_says_what_the_host_was_told(log, clock):
    """Verdict, reason, status, wait and id on the line are those of the decision."""
    for decide in (admits, defers("slots"), rejects("rate_limit", estimate_ms=90_000)):
        d = rule(decide, log=log, clock=clock)({}, request_id="r")
        line = log.decisions[-1]
        for name in ("verdict", "reason", "admitted", "enforced", "status", "seq"):
            assert line[name] == getattr(d, name), name
        assert line.get("retry_after_ms") == d.retry_after_ms
        assert line.get("estimate_ms") == d.estimate_ms
        assert line.get("wait") == d.wait
        assert line["id"] == d.request_id


def test_time_on_the_lines_is_the_monotonic_clocks(log, clock):
    """A wall clock that is set back does not turn the log round."""
    policy = rule(admits, log=log, clock=clock)
    policy({})
    clock.set_wall(0.0)
    clock.advance(1.5)
    policy({})
    first, second = (line["t_us"] for line in log.decisions)
    assert first == 1_700_000_000_000_000
    assert second - first == 1_500_000


def test_a_sources_note_stands_beside_inline_metrics(log):
    """A small host's line says where each signal came from."""
    wall(log=log)({"vllm:kv_cache_usage_perc": 0.2, "vllm:num_requests_waiting": 1})
    sources = log.decisions[0]["sources"]
    assert sources["kv_pressure"] == "vllm_kv_cache_usage_perc max"
    assert sources["queue_depth"] == "vllm_num_requests_waiting sum"


def test_a_reading_in_a_file_says_how_each_signal_was_read(tmp_path, clock):
    """Value, source, age, parts, what was skipped, and why a signal is absent."""
    path = tmp_path / "log.jsonl"
    raw = {
        'vllm:kv_cache_usage_perc{engine="0"}': 0.2,
        'vllm:kv_cache_usage_perc{engine="1"}': 0.7,
        'vllm:num_requests_waiting{engine="0"}': -1.0,
        **{f"m{n}": float(n) for n in range(40)},
    }
    with rule(admits, log=path, clock=clock) as policy:
        policy(reading(clock, raw, replica="r9"))
    lines = [strict(text) for text in path.read_text("ascii").splitlines()]
    (told,) = [line for line in lines if line["k"] == "reading"]
    kv = told["signals"]["kv_pressure"]
    assert (kv["value"], kv["source"]) == (0.7, "vllm_kv_cache_usage_perc max")
    assert kv["parts"] == {"engine=0": 0.2, "engine=1": 0.7}
    assert kv["age_ms"] == 0
    queue = told["signals"]["queue_depth"]
    assert queue["value"] is None
    assert "-1" in queue["absent"]
    assert told["raw"] == raw
    assert told["replica"] == "r9"
    (decision,) = [line for line in lines if line["k"] == "decision"]
    assert decision["reading"] == told["id"]


def test_a_plain_yes_is_a_short_line(log):
    """With two gates and three facts it stays under 700 bytes."""
    wall(log=log)(QUIET, request_id="0" * 36, tenant="acme", session="s" * 36,
                  input_tokens=2168)  # fmt: skip
    assert len(log.texts[0]) <= 700
