"""What the real writer writes, the schemas and the reader take."""

import json

import pytest

from admitperf import Policy
from admitperf.core.reading import Reading
from admitperf.core.signals import KV_PRESSURE, QUEUE_DEPTH
from admitperf.reports.files.expand import expand
from admitperf.reports.files.lines import LogFile
from admitperf.reports.report import report

FACTS = {
    "logical_id": "call-1",
    "attempt": 1,
    "tenant": "Se\u00f1or",
    "session": "s\x1b[0m",
    "model": "m",
    "slo_class": "chat",
    "input_tokens": 300,
    "cached_tokens": 100,
    "max_output_tokens": 64,
    "n": 1,
    "deadline_s": 4.5,
    "priority": -1,
    "stream": True,
    "session_final": False,
}


class Wall(Policy):
    """The brief's sample, by another name."""

    name = "wall"

    def decide(self, metrics):
        """Refuse at the wall, wait for the queue."""
        if KV_PRESSURE.read(metrics) >= self.threshold:
            return self.reject("kv_pressure")
        if QUEUE_DEPTH.read(metrics) > self.max_waiting:
            return self.defer("queue_depth", retry_after_ms=200)
        return self.admit()


def drive(path, **settings):
    """Decide on a page that moves, with outcomes, faults and blindness."""
    with Wall(threshold=0.9, max_waiting=32, log=str(path), **settings) as policy:
        for turn in range(240):
            page = {
                "kv_pressure": (turn % 101) / 100,
                "queue_depth": turn % 50,
                **{f"other_{n}": turn // 10 for n in range(40)},
            }
            if turn % 7 == 0:
                page["odd"] = float("nan")
            made = policy(page, request_id=f"r{turn}", **FACTS)
            if made.admitted:
                policy.outcome(
                    made.request_id,
                    ok=turn % 9 > 0,
                    ttft_ms=200 + turn,
                    max_gap_ms=20.5,
                    error=None if turn % 9 else "reset \u2713",
                )
        policy({"queue_depth": 1})
        policy(Reading({"kv_pressure": 0.5}, age_s=60.0, replica="r2"))
        policy.outcome("never-seen")
        policy.outcome("r1")
        policy({"kv_pressure": 0.1}, input_tokens=-5)


@pytest.fixture(params=["auto", "inline", "reference"])
def written(request, tmp_path):
    """A log of the real writer, in each form of raw metrics."""
    path = tmp_path / "real.jsonl"
    slo = {"chat": {"ttft_ms": 300, "stall_ms": 500}}
    drive(path, raw=request.param, slo=slo, notes="\u2713", reports_outcomes=True)
    return path


def test_every_line_keeps_to_its_schema(written, schemas):
    """Strict JSON, ASCII, and no field nobody documented."""
    kinds = set()
    for line in written.read_bytes().splitlines():
        assert line.isascii()
        fields = json.loads(line, parse_constant=pytest.fail)
        errors = [error.message for error in schemas[fields["k"]].iter_errors(fields)]
        assert errors == [], fields
        kinds.add(fields["k"])
    assert {"run", "decision", "outcome", "control"} <= kinds


def test_the_reader_takes_every_line(written):
    """No fault, and all that was decided is in the report."""
    lines = [json.loads(line) for line in written.read_bytes().splitlines()]
    let_in = [line for line in lines if line["k"] == "decision" and line["admitted"]]
    made = report([str(written)])
    (run,) = made.runs
    assert made.files.unusable == {}
    assert run.answers.offered == 243
    assert run.finding.word in ("LIVE", "UNKNOWN")
    assert run.faults.without_decision == 0
    assert run.faults.dangling == 0
    assert run.faults.repeated == {}
    assert run.faults.lost == {}
    assert {gate.signal for gate in run.gates} == {"kv_pressure", "queue_depth"}
    assert run.cost.let_in.n == len(let_in)
    assert run.cost.reported.n == sum(line["k"] == "outcome" for line in lines)


def test_expanded_by_reference_is_what_inline_writes(tmp_path):
    """Both forms carry the same raw metrics and sources, line by line."""
    made = {}
    for form in ("inline", "reference"):
        path = tmp_path / f"{form}.jsonl"
        drive(path, raw=form, reports_outcomes=True)
        lines = map(json.loads, expand(LogFile(str(path))))
        made[form] = [
            (line["verdict"], line["raw"], line["sources"])
            for line in lines
            if line["k"] == "decision"
        ]
    assert len(made["inline"]) == 243
    assert made["reference"] == made["inline"]
